"""Runs of a gauntlet: started, judged by a worker, and what they decide. Every run stays on record."""

import json
from collections import Counter
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import unit_create
from apps.feedback.gauntlet import Origin, entries_refresh, only_impossible, owner_of
from apps.feedback.models import GauntletEntry, GauntletOutcome, GauntletRun, Verifier
from apps.versions.selectors import judge_targets
from artifacts import get_store
from domain.contracts import RunVerifyBatch, VerifyBatchResult
from domain.storable import storable

REPEATS = 3
_REASONS = 50


def verifier_check(*, verifier: Verifier, by: Actor) -> WorkUnit:
    """Start the gauntlet; the verifier is admitted or refused when its unit has finished."""
    entries_refresh(verifier=verifier)
    entries = list(verifier.entries.in_force().order_by("pk"))
    wanted = [(Origin.BAD, "known bad")]
    if not only_impossible(verifier):
        wanted.insert(0, (Origin.GOOD, "known good"))
    for origin, words in wanted:
        if not any(entry.origin == origin for entry in entries):
            raise Refused(
                f"The gauntlet needs at least one {words} answer. Make a task of this family from a labelled "
                "case, or add an answer by hand.",
                code="gauntlet_empty",
            )
    digest = get_store().put_jsonl(_item(entry) for entry in entries)
    with transaction.atomic():
        locked = Verifier.objects.select_for_update().get(pk=verifier.pk)
        owner = owner_of(locked)
        if WorkUnit.objects.filter(owner=owner, kind="verify_batch").open().exists():
            raise Conflict("This verifier is being checked already.", code="check_running")
        locked.checks += 1
        locked.save(update_fields=["checks"])
        GauntletRun.objects.create(
            verifier=locked, number=locked.checks, started_by=by.name, size=len(entries)
        )
        unit = unit_create(
            project=locked.project,
            kind="verify_batch",
            key=f"verify:{locked.pk}:{locked.checks}",
            owner=owner,
            queue="eval",
            priority=5,
            message=RunVerifyBatch(
                items_digest=digest, repeats=REPEATS, judges=judge_targets(locked.project, owner)
            ),
        )
        audit(actor=by, action="verifier.check", obj=locked, entries=len(entries))
        publish(project=locked.project, topic=owner, kind="VerifierCheckStarted", unit=unit.pk)
    return unit


def check_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Judge the judge. Called inside the transaction that closes the unit."""
    done = VerifyBatchResult.model_validate(result)
    verifier, run = _of(unit)
    digest = RunVerifyBatch.model_validate(unit.payload).items_digest
    store = get_store()
    judged = {
        item["entry"]: (_canonical(item), outcome)
        for item, outcome in zip(store.iter_jsonl(digest), store.iter_jsonl(done.results_digest), strict=True)
    }
    now = timezone.now()
    refusals: list[str] = []
    outcomes: list[GauntletOutcome] = []
    entries = list(verifier.entries.in_force().order_by("pk"))
    for entry in entries:
        asked, outcome = judged.get(entry.pk, ("", {}))
        if asked != _canonical(_item(entry)):
            refusals.append(f"“{entry.name}” was added meanwhile; run the gauntlet again.")
            continue
        states = outcome["states"]
        refusal = _refusal(entry, states)
        entry.outcome = states[0] if len(set(states)) == 1 else "unscored"
        entry.reasons, entry.checked_at = storable(outcome["reasons"]), now
        outcomes.append(
            GauntletOutcome(run=run, entry=entry, states=states, right=not refusal, reasons=entry.reasons)
        )
        refusals += refusal
    GauntletEntry.objects.bulk_update(entries, ["outcome", "reasons", "checked_at"], batch_size=200)
    GauntletOutcome.objects.bulk_create(outcomes, ignore_conflicts=True, batch_size=200)
    verifier.reasons, verifier.checked_at = refusals[:_REASONS], now
    verifier.admission = Verifier.Admission.REFUSED if refusals else Verifier.Admission.ADMITTED
    verifier.save(update_fields=["reasons", "checked_at", "admission"])
    run.finished_at, run.admission, run.reasons = now, verifier.admission, verifier.reasons
    run.counts = dict(Counter(state for outcome in outcomes for state in outcome.states))
    run.wrong = sum(not outcome.right for outcome in outcomes)
    run.save(update_fields=["finished_at", "admission", "reasons", "counts", "wrong"])
    say = f"{verifier.name} {'refused' if refusals else 'admitted'}"
    publish(
        project=unit.project, topic=unit.owner, kind="VerifierChecked", admission=verifier.admission, say=say
    )


def check_failed(unit: WorkUnit, error: str) -> None:
    """The gauntlet could not run: that is no admission, and no refusal either."""
    verifier, run = _of(unit)
    verifier.admission = Verifier.Admission.UNCHECKED
    verifier.reasons = [f"The gauntlet could not run: {error[:300]}"]
    verifier.save(update_fields=["admission", "reasons"])
    run.finished_at, run.error = timezone.now(), error[:2000]
    run.save(update_fields=["finished_at", "error"])
    publish(project=unit.project, topic=unit.owner, kind="VerifierChecked", admission=verifier.admission)


def _refusal(entry: GauntletEntry, states: list[str]) -> list[str]:
    if len(set(states)) > 1:
        return [f"“{entry.name}” was judged differently in {len(states)} repeats."]
    want = "passed" if entry.must_pass else "failed"
    if states[0] == want:
        return []
    return [f"“{entry.name}” must be {want} and was {states[0]}."]


def _item(entry: GauntletEntry) -> dict[str, Any]:
    """A line for the worker; ``entry`` says whose it is."""
    return {"entry": entry.pk, "task": entry.task, "answer": entry.answer, "turns": entry.turns}


def _canonical(item: dict[str, Any]) -> str:
    return json.dumps([item["task"], item["answer"], item["turns"]], sort_keys=True)


def _of(unit: WorkUnit) -> tuple[Verifier, GauntletRun]:
    verifier = Verifier.objects.select_for_update().get(pk=int(unit.owner.rpartition(":")[2]))
    number = int(unit.key.rpartition(":")[2])
    return verifier, GauntletRun.objects.get(verifier=verifier, number=number)
