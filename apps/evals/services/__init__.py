"""Writes of evals, one file per noun."""

from apps.evals.services.batches import eval_batch_failed, eval_batch_finished
from apps.evals.services.captures import results_capture
from apps.evals.services.exports import suite_export_jsonl, suite_export_stream
from apps.evals.services.figures import run_refigure, runs_refigure_missing
from apps.evals.services.gate_ticks import gates_tick
from apps.evals.services.gates import gate_decide, gate_revise
from apps.evals.services.imports import (
    suite_import_change,
    suite_import_confirm,
    suite_import_discard,
    suite_import_files,
    suite_import_jsonl,
    suite_import_start,
    suite_import_stop,
    suite_import_tasks,
    suite_imports_sweep,
)
from apps.evals.services.longcontext import context_suite_create
from apps.evals.services.pack_suites import pack_suite_create, pack_suite_draw
from apps.evals.services.probe_rounds import probe_round
from apps.evals.services.probes import (
    probe_change,
    probe_create,
    probe_reference_renew,
    probe_request_round,
    probes_hear,
    probes_tick,
)
from apps.evals.services.runs import run_cancel, run_pause, run_resume, run_retry_errors, run_start
from apps.evals.services.suites import suite_create, suite_version_create

__all__ = [
    "context_suite_create",
    "eval_batch_failed",
    "eval_batch_finished",
    "gate_decide",
    "gate_revise",
    "gates_tick",
    "pack_suite_create",
    "pack_suite_draw",
    "probe_change",
    "probe_create",
    "probe_reference_renew",
    "probe_request_round",
    "probe_round",
    "probes_hear",
    "probes_tick",
    "results_capture",
    "run_cancel",
    "run_pause",
    "run_refigure",
    "run_resume",
    "run_retry_errors",
    "run_start",
    "runs_refigure_missing",
    "suite_create",
    "suite_export_jsonl",
    "suite_export_stream",
    "suite_import_change",
    "suite_import_confirm",
    "suite_import_discard",
    "suite_import_files",
    "suite_import_jsonl",
    "suite_import_start",
    "suite_import_stop",
    "suite_import_tasks",
    "suite_imports_sweep",
    "suite_version_create",
]
