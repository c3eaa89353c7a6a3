"""How far a verifier agrees with the people who labelled its family's cases.

People's word: a label says that the answer failed, "not a failure" that it passed, a correction is an answer
that passes. What the reference was made from is no evidence for it: a correction counts only where the
reference comes from somewhere else.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.utils import timezone
from pydantic import ValidationError

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import unit_create
from apps.feedback.assets import case_task, with_surrogates
from apps.feedback.models import (
    AgreementRow,
    Capture,
    FailureCase,
    Family,
    Label,
    Verifier,
    VerifierAgreement,
)
from apps.feedback.schemas import NOT_A_FAILURE
from apps.feedback.verifiers import versions_of
from apps.versions.selectors import judge_targets
from artifacts import get_store
from domain.calibration import FEW, Rated, calibrate
from domain.contracts import RunVerifyBatch, TaskSpec, VerifyBatchResult
from domain.intervals import Interval
from domain.storable import storable
from domain.verifiers import InvalidVerifier, check_spec

MAX_CASES = 2000
_BATCH = 500
_DECIDED = ("passed", "failed")
Text = AgreementRow.Text
Why = Counter[str]


class Item(NamedTuple):
    """One answer of a case; ``passes`` is what people say of it."""

    case: int
    text: str
    passes: bool
    task: TaskSpec
    answer: str


def agreement_start(*, verifier: Verifier, by: Actor) -> VerifierAgreement:
    """Judge the newest labelled cases of the families that any version of ``verifier`` judges; the figures
    are there when the unit has finished."""
    left_out: Why = Counter()
    items = list(_items(verifier, left_out))
    if not items:
        raise Refused(_nothing(verifier, left_out), code="labels_missing")
    digest = get_store().put_jsonl(
        {
            "task": item.task.model_dump(mode="json"),
            "answer": item.answer,
            "turns": [],
            "case": item.case,
            "text": item.text,
        }
        for item in items
    )
    try:
        with transaction.atomic():
            locked = Verifier.objects.select_for_update().select_related("project").get(pk=verifier.pk)
            agreement = VerifierAgreement.objects.create(
                verifier=locked,
                number=locked.agreements.count() + 1,
                size=len(items),
                left_out=dict(left_out),
                started_by=by.name,
            )
            rows = [
                AgreementRow(agreement=agreement, case_id=item.case, text=item.text, passes=item.passes)
                for item in items
            ]
            AgreementRow.objects.bulk_create(rows, batch_size=_BATCH)
            owner = owner_of(agreement)
            unit_create(
                project=locked.project,
                kind="verify_batch",
                key=f"agreement:{agreement.pk}",
                owner=owner,
                queue="eval",
                priority=5,
                message=RunVerifyBatch(
                    items_digest=digest, repeats=1, judges=judge_targets(locked.project, owner)
                ),
            )
            audit(actor=by, action="verifier.agreement", obj=locked, answers=len(items))
            publish(project=locked.project, topic=owner, kind="AgreementStarted")
    except IntegrityError:
        raise Conflict("This version is being measured already.", code="agreement_running") from None
    return agreement


def agreement_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Store what was said of every answer, and the figures."""
    agreement = _of(unit)
    if agreement.finished_at is not None:
        return
    done = VerifyBatchResult.model_validate(result)
    store, digest = get_store(), RunVerifyBatch.model_validate(unit.payload).items_digest
    items, outcomes = store.iter_jsonl(digest), store.iter_jsonl(done.results_digest)
    said = {(item["case"], item["text"]): outcome for item, outcome in zip(items, outcomes, strict=True)}
    rows = list(agreement.rows.select_related("case__capture").only(*_COLUMNS).order_by("pk"))
    for row in rows:  # fewer than were asked, where a case was deleted meanwhile
        outcome = said[row.case_id, row.text]
        row.state, row.reasons = outcome["states"][0], storable(outcome["reasons"])
    AgreementRow.objects.bulk_update(rows, ["state", "reasons"], batch_size=_BATCH)
    _measure(agreement, rows)
    agreement.finished_at = timezone.now()
    agreement.save()
    say = f"{agreement.verifier} is measured"
    publish(project=unit.project, topic=unit.owner, kind="AgreementFinished", say=say)


def agreement_failed(unit: WorkUnit, error: str) -> None:
    """What could not be judged says nothing about the verifier."""
    agreement = _of(unit)
    if agreement.finished_at is not None:
        return
    agreement.error, agreement.finished_at = error[:2000], timezone.now()
    agreement.save(update_fields=["error", "finished_at"])
    publish(project=unit.project, topic=unit.owner, kind="AgreementFinished")


def disagreements(agreement: VerifierAgreement, limit: int = 200) -> QuerySet[AgreementRow]:
    """Answers that people and the verifier judged differently, those that it let through first."""
    wrong = agreement.rows.filter(passes=False, state="passed") | agreement.rows.filter(
        passes=True, state="failed"
    )
    return (
        wrong.select_related("case")
        .only("text", "passes", "state", "reasons", "agreement", "case__title", "case__id")
        .order_by("passes", "pk")[:limit]
    )


def undecided(agreement: VerifierAgreement, limit: int = 50) -> QuerySet[AgreementRow]:
    rows = agreement.rows.exclude(state__in=[*_DECIDED, ""]).select_related("case")
    return rows.only("text", "passes", "state", "reasons", "agreement", "case__title", "case__id")[:limit]


def owner_of(agreement: VerifierAgreement) -> str:
    return f"feedback.agreement:{agreement.pk}"


_COLUMNS = ("text", "passes", "agreement", "case__id", "case__group_key", "case__capture__cluster")


def _measure(agreement: VerifierAgreement, rows: list[AgreementRow]) -> None:
    """Answers of one source, and the two of one case, are not independent: the intervals know it."""
    found = calibrate(
        [
            Rated(
                source=row.case.capture.cluster or row.case.group_key or f"case:{row.case_id}",
                human=row.passes,
                judged=row.state == "passed" if row.state in _DECIDED else None,
                silence="" if row.state in _DECIDED else "error" if row.state == "error" else "missing",
            )
            for row in rows
        ]
    )
    counts = found.confusion
    agreement.n, agreement.unscored, agreement.errors = (
        found.decided,
        sum(row.state not in (*_DECIDED, "error") for row in rows),
        sum(row.state == "error" for row in rows),
    )
    agreement.caught, agreement.missed = counts.fail_fail, counts.fail_pass
    agreement.accused, agreement.cleared = counts.pass_fail, counts.pass_pass
    agreement.clusters = found.accuracy_interval.clusters or 0 if found.accuracy_interval else 0
    agreement.too_small = _too_small(agreement)
    if not agreement.too_small:
        agreement.agreement = _figure(found.accuracy, found.accuracy_interval)
        agreement.kappa = _figure(found.kappa, found.kappa_interval)
        agreement.f1 = _figure(found.f1, found.f1_interval)


def _too_small(agreement: VerifierAgreement) -> str:
    if agreement.n < FEW:
        return f"n too small: both decided {agreement.n} answers, {FEW} are the least."
    return "" if agreement.clusters > 1 else "n too small: all answers come from one source."


def _figure(value: float | None, interval: Interval | None) -> dict[str, Any] | None:
    """None where the value is undefined, or has no interval: no bare number is shown."""
    if value is None or interval is None:
        return None
    return {
        "value": value,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "clusters": interval.clusters,
        "method": interval.method,
    }


def _items(verifier: Verifier, left_out: Why) -> Iterator[Item]:
    in_force = Label.objects.filter(undone_at=None).order_by("-pk")
    cases = (
        FailureCase.objects.filter(project=verifier.project, family__in=_families(verifier))
        .filter(Exists(Label.objects.filter(case=OuterRef("pk"), undone_at=None)))
        .filter(capture__state=Capture.State.ANONYMIZED)
        .select_related("capture")
        .defer("signature", "capture__raw", "capture__spans", "capture__pseudonyms")
        .prefetch_related(Prefetch("labels", in_force, to_attr="in_force"))
        .order_by("-pk")
    )
    if (more := cases.count() - MAX_CASES) > 0:
        left_out["older_cases"] = more
    for case in cases[:MAX_CASES].iterator(chunk_size=200):
        yield from _of_case(case, verifier, left_out)


def _of_case(case: Any, verifier: Verifier, left_out: Why) -> Iterator[Item]:
    words = {label.kind == NOT_A_FAILURE for label in case.in_force}
    if len(words) > 1:
        left_out["people_disagree"] += 1
        return
    passes = words == {True}
    corrections = [label.correction for label in case.in_force if label.correction.strip()]
    given = str((case.capture.content or {}).get("correction", ""))
    correction = "" if passes else next(iter(corrections), given)
    content, correction = with_surrogates(case, correction)
    try:
        task = case_task(case=case, verifier=verifier, content=content, correction=correction)
    except (Refused, ValidationError, KeyError):
        bare = _without_reference(case, verifier, content)
        if bare is None:
            left_out["no_reference"] += 1
            return
        task = bare
    answer = str(content.get("answer", ""))
    if answer.strip():
        yield Item(case.pk, Text.ANSWER, passes, task, answer)
    else:
        left_out["no_text"] += 1
    if correction.strip() and not passes and _independent(task, content):
        yield Item(case.pk, Text.CORRECTION, True, task, correction)


def _without_reference(case: FailureCase, verifier: Verifier, content: dict[str, Any]) -> TaskSpec | None:
    """For kinds that ask for none: people may call an answer good without writing another one."""
    try:
        task = case_task(case=case, verifier=verifier, content=content, correction="-")
        task = task.model_copy(update={"reference": None})
        check_spec(task.verifier, None)
    except (Refused, InvalidVerifier, ValidationError, KeyError):
        return None
    return task


def _independent(task: TaskSpec, content: dict[str, Any]) -> bool:
    return task.reference is None or content.get("reference") is not None


def _families(verifier: Verifier) -> list[str]:
    """Families that a version of this name judges, or judged: their tasks say so."""
    families = Family.objects.filter(project_id=verifier.project_id)
    now = families.filter(verifier__in=versions_of(verifier)).values_list("name", flat=True)
    before = families.filter(assets__verifier__in=versions_of(verifier)).values_list("name", flat=True)
    return sorted({*now, *before.distinct()})


def _nothing(verifier: Verifier, left_out: Why) -> str:
    families = _families(verifier)
    if not families:
        return "No family is judged by this verifier. Let one use it, then label some of its cases."
    if left_out:
        why = ", ".join(f"{count} {LEFT_OUT[name]}" for name, count in left_out.items())
        return f"None of the labelled cases of {', '.join(families)} can be judged: {why}."
    return f"No case of {', '.join(families)} is labelled yet. Label some, then measure again."


LEFT_OUT = {
    "older_cases": "older cases",
    "people_disagree": "on which people disagree",
    "no_reference": "without a right answer to compare with",
    "no_text": "without an answer",
}


def _of(unit: WorkUnit) -> VerifierAgreement:
    key = int(unit.owner.rpartition(":")[2])
    rows = VerifierAgreement.objects.select_for_update(of=("self",)).select_related("verifier")
    return rows.get(pk=key)
