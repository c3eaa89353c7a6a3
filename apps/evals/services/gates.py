"""Writes of gates: a new revision of the rules, a decision on a run, and its evidence on the version."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.evals.gate_evidence import gate_evidence, results_digest
from apps.evals.models import GateDecision, GateRevision, Run, Suite
from apps.evals.selectors import gates
from apps.versions.selectors import version_in_service
from apps.versions.services import evidence_record
from domain.gate_decision import GateOutcome
from domain.gate_decision import gate_decide as judge
from domain.gate_rules import needs_baseline, rules_json, rules_read

ENDED = (Run.State.DONE, Run.State.FAILED, Run.State.CANCELLED)


def gate_revise(
    *, suite: Suite, rules: Sequence[Mapping[str, Any]], reason: str, by: Actor, blocks_release: bool = True
) -> GateRevision:
    """Put new rules in force from now on; none take the gate away. Runs that are judged already stay as
    they are. Refused: rules that cannot be, no reason, nothing changed."""
    reason = reason.strip()
    if not reason:
        raise Refused("Give a reason; it goes into the audit trail.", code="reason_missing")
    try:
        wanted = rules_json(rules_read(rules))
    except ValueError as error:
        raise Refused(str(error), code="rules_invalid") from None
    with transaction.atomic():
        locked = Suite.objects.select_for_update().get(pk=suite.pk)
        last = locked.gate_revisions.first()
        if last is None and not wanted:
            raise Conflict("This suite has no gate to take away.", code="nothing_changed")
        if last is not None and (last.rules, last.blocks_release) == (wanted, blocks_release):
            raise Conflict(f"These are the rules in force, number {last.number}.", code="nothing_changed")
        revision = GateRevision.objects.create(
            suite=locked,
            number=last.number + 1 if last else 1,
            rules=wanted,
            digest=digest_of({"rules": wanted, "blocks_release": blocks_release}),
            blocks_release=blocks_release,
            reason=reason,
            created_by=by.name,
        )
        audit(actor=by, action="gate.revise", obj=locked, reason=reason, number=revision.number)
        publish(
            project=locked.project,
            topic=gates.gate_key(locked),
            kind="GateRevised",
            number=revision.number,
        )
    return revision


def gate_decide(*, run: Run, by: Actor, baseline: Run | None = None) -> GateDecision:
    """Judge ``run`` by the rules in force and keep the answer; the same question has one answer.

    Without ``baseline`` it is the version in service. Only then does the decision reach the version as
    evidence, so that nobody opens a release by naming a weak baseline.
    Refused: a run that goes on, a suite without a gate, a baseline of another suite or without an end.
    """
    run = _fresh(run)
    suite = run.suite_version.suite
    revision = gates.gate_in_force(suite)
    if revision is None:
        raise Conflict(f"{suite} has no gate. Give it rules first.", code="gate_missing")
    if run.state not in ENDED:
        raise Conflict("Wait until the run has ended.", code="run_not_ended")
    rules, named = revision.parsed(), baseline is not None
    missing = ""
    if baseline is not None:
        baseline = _fresh(baseline)
        _check_baseline(run, baseline)
    elif needs_baseline(rules):
        baseline, missing = gates.gate_baseline(run)
    digests = {
        "rules": revision.digest,
        "suite": run.suite_version.digest,
        "run": results_digest(run),
        "baseline": results_digest(baseline) if baseline is not None else "",
    }
    asked = digest_of(
        {
            **digests,
            "revision": revision.pk,
            "ended": f"{run.state} {run.finished_at}",
            "missing": missing,
            "named": named,
            "baseline_run": baseline.pk if baseline else 0,
        }
    )
    known = run.gate_decisions.filter(digest=asked).first()
    outcome = None if known else judge(rules, gate_evidence(run, rules, baseline, missing))
    with transaction.atomic():
        _check_unchanged(run, baseline)
        if outcome is None:
            assert known is not None
            decision = known
        else:
            decision, made = GateDecision.objects.get_or_create(
                run=run,
                digest=asked,
                defaults={
                    "project": run.project,
                    "revision": revision,
                    "baseline": baseline,
                    "in_service_baseline": not named,
                    "decision": outcome.decision,
                    "sentence": outcome.sentence,
                    "results": _results(outcome),
                    "suite_digest": digests["suite"],
                    "rules_digest": digests["rules"],
                    "run_digest": digests["run"],
                    "baseline_digest": digests["baseline"],
                    "created_by": by.name,
                },
            )
            if made:
                audit(actor=by, action="gate.decide", obj=run, decision=decision.decision, digest=asked)
                publish(
                    project=run.project,
                    topic=run.lineage_key,
                    kind="GateDecided",
                    decision=decision.decision,
                    say=f"Gate of run {run.pk} {decision.get_decision_display().lower()}",
                )
        if run.version is not None and not named:
            decision_push(run, decision)
    return decision


def decision_push(run: Run, decision: GateDecision) -> None:
    """The newest finished run of a version and edition speaks for it; an older one says nothing new."""
    assert run.version is not None
    suite = run.suite_version.suite
    newer = Run.objects.filter(
        suite_version__suite=suite,
        version=run.version,
        edition_kind=run.edition_kind,
        pk__gt=run.pk,
        gate_decisions__in_service_baseline=True,
    )
    if newer.exists():
        return
    serving = version_in_service(run.project)
    compared = decision.baseline is not None and serving is not None
    evidence_record(
        version=run.version,
        edition_kind=run.edition_kind,
        kind="gate",
        source=gates.gate_key(suite),
        title=f"Gate of {suite}",
        sentence=decision.sentence,
        verdict=decision.decision,
        data={
            "decision": decision.pk,
            "digest": decision.digest,
            "stamp": gates.gate_stamp(decision.revision.number, run.suite_version.number),
            "against_version": decision.baseline.version_id if compared and decision.baseline else None,
            "rules_digest": decision.rules_digest,
            "suite_digest": decision.suite_digest,
            "run_digest": decision.run_digest,
            "baseline_digest": decision.baseline_digest,
        },
        url=decision.get_absolute_url(),
    )


def _check_baseline(run: Run, baseline: Run) -> None:
    if baseline.project_id != run.project_id or (
        baseline.suite_version.suite_id != run.suite_version.suite_id
    ):
        raise Refused("The baseline is a run of another suite.", code="baseline_foreign")
    if baseline.pk == run.pk:
        raise Refused("A run cannot be its own baseline.", code="same_run")
    if baseline.state != Run.State.DONE:
        raise Conflict(f"The baseline, run {baseline.pk}, has not finished.", code="baseline_not_done")


def _check_unchanged(*runs: Run | None) -> None:
    """What was read without a lock must still be so: a run may have been started again meanwhile, and then
    its digest is of other results than its figures. Locks the runs."""
    for run in sorted((row for row in runs if row is not None), key=lambda row: row.pk):
        now = Run.objects.select_for_update().get(pk=run.pk)
        if (now.state, now.finished_at, now.retries) != (run.state, run.finished_at, run.retries):
            raise Conflict(f"Run {run.pk} was started again while it was judged.", code="run_not_ended")


def _fresh(run: Run) -> Run:
    return Run.objects.select_related("suite_version__suite", "version", "deployment", "project").get(
        pk=run.pk
    )


def _results(outcome: GateOutcome) -> list[dict[str, Any]]:
    return [result._asdict() for result in outcome.rules]


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
