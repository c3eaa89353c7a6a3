"""Every write of feedback, by its public name; the work is in one file per noun."""

from apps.feedback.agreements import agreement_start
from apps.feedback.anonymizer import rules_try
from apps.feedback.assets import asset_create, asset_retire, assets_import
from apps.feedback.calibrations import calibration_cancel, calibration_start
from apps.feedback.captures import (
    capture_anonymize,
    captures_ingest,
    captures_sweep,
    case_capture,
    signal_anonymize,
)
from apps.feedback.cases import case_lease, case_release, case_skip, queue_next
from apps.feedback.datasets import dataset_bytes, dataset_create
from apps.feedback.families import family_ensure
from apps.feedback.gauntlet import entry_add, entry_retire
from apps.feedback.gauntlet_runs import verifier_check
from apps.feedback.inferences import inferences_ingest
from apps.feedback.judges import gold_add, gold_retire, judge_save
from apps.feedback.labels import case_label, cases_label_group, label_undo
from apps.feedback.pack_families import (
    pack_add,
    pack_family_add,
    packs_check,
    sandbox_state_apply,
)
from apps.feedback.rules import rules_revise
from apps.feedback.schemas import schema_in_force, schema_revise
from apps.feedback.signals import signals_ingest
from apps.feedback.trials import verifier_try
from apps.feedback.verifiers import family_use_verifier, verifier_create

__all__ = [
    "agreement_start",
    "asset_create",
    "asset_retire",
    "assets_import",
    "calibration_cancel",
    "calibration_start",
    "capture_anonymize",
    "captures_ingest",
    "captures_sweep",
    "case_capture",
    "case_label",
    "case_lease",
    "case_release",
    "case_skip",
    "cases_label_group",
    "dataset_bytes",
    "dataset_create",
    "entry_add",
    "entry_retire",
    "family_ensure",
    "family_use_verifier",
    "gold_add",
    "gold_retire",
    "inferences_ingest",
    "judge_save",
    "label_undo",
    "pack_add",
    "pack_family_add",
    "packs_check",
    "queue_next",
    "rules_revise",
    "rules_try",
    "sandbox_state_apply",
    "schema_in_force",
    "schema_revise",
    "signal_anonymize",
    "signals_ingest",
    "verifier_check",
    "verifier_create",
    "verifier_try",
]
