"""Calibrations: a judge asked about answers that people have judged, and what came of it.

The handlers are called inside the transaction that closes the unit, so a report that comes twice finds
its unit closed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import unit_create, units_cancel
from apps.feedback.judge_costs import cost_usd
from apps.feedback.judge_items import MAX_ITEMS, item_task, items_for
from apps.feedback.models import Calibration, Judge, JudgedAnswer
from apps.versions.selectors import judge_targets
from artifacts import get_store
from domain.calibration import Rated, calibrate, doubts
from domain.contracts import RunVerifyBatch, TaskSpec, VerifyBatchResult
from domain.judge_votes import Vote, votes
from domain.storable import storable
from domain.verifiers.panel import EVIDENCE, voice_name, voices

UNIT = "calibrate_batch"
_BATCH = 200


def calibration_start(*, judge: Judge, limit: int = MAX_ITEMS, by: Actor) -> Calibration:
    """Ask ``judge`` about at most ``limit`` answers that people have judged."""
    project = judge.project
    if not 2 <= limit <= MAX_ITEMS:
        raise Refused(f"Take 2 to {MAX_ITEMS} answers.", code="limit_invalid")
    known = judge_targets(project, "calibration")
    if missing := sorted({model for _, model in voices(judge.params)} - known.keys()):
        what = (
            f"There is no endpoint “{missing[0]}”" if missing[0] else "This project has no external endpoint"
        )
        raise Refused(f"{what}. Judges are external endpoints of the project.", code="judge_missing")
    found = items_for(project, judge.kind, limit)
    if len(found.items) < 2:
        raise Refused(_nothing(judge.kind), code="answers_missing")
    digest = get_store().put_jsonl(
        {
            "task": item_task(judge, number, item).model_dump(mode="json"),
            "answer": item.answer,
            "human": item.human,
            "origin": item.origin,
            "title": item.title,
            "case": item.case_id,
            "gold": item.gold_id,
        }
        for number, item in enumerate(found.items)
    )
    taken = {**Counter(item.origin for item in found.items), "left_out": found.left_out}
    try:
        with transaction.atomic():
            locked = Judge.objects.select_for_update().select_related("project").get(pk=judge.pk)
            number = locked.calibrations.count() + 1
            calibration = Calibration.objects.create(
                judge=locked,
                number=number,
                size=len(found.items),
                taken=taken,
                items_digest=digest,
                started_by=by.name,
            )
            owner = calibration.lineage_key
            unit_create(
                project=project,
                kind=UNIT,
                key=f"calibrate:{calibration.pk}",
                owner=owner,
                queue="eval",
                priority=5,
                message=RunVerifyBatch(
                    items_digest=digest, repeats=1, judges=judge_targets(project, owner), keep_evidence=True
                ),
            )
            audit(actor=by, action="judge.calibrate", obj=locked, answers=len(found.items))
            publish(project=project, topic=owner, kind="CalibrationStarted")
    except IntegrityError:
        raise Conflict("This judge is being calibrated already.", code="calibration_running") from None
    return calibration


def calibration_cancel(*, calibration: Calibration, by: Actor) -> None:
    with transaction.atomic():
        locked = (
            Calibration.objects.select_for_update().select_related("judge__project").get(pk=calibration.pk)
        )
        if locked.state != Calibration.State.RUNNING:
            raise Conflict("This calibration has ended already.", code="calibration_ended")
        units_cancel(owner=locked.lineage_key)
        locked.state, locked.finished_at = Calibration.State.CANCELLED, timezone.now()
        locked.save(update_fields=["state", "finished_at"])
        audit(actor=by, action="calibration.cancel", obj=locked)
        publish(project=locked.judge.project, topic=locked.lineage_key, kind="CalibrationCancelled")


def calibration_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Store what the judge said of every answer, and what it comes to."""
    calibration = _of(unit)
    if calibration.state != Calibration.State.RUNNING:
        return
    done = VerifyBatchResult.model_validate(result)
    store = get_store()
    items, results = store.iter_jsonl(calibration.items_digest), store.iter_jsonl(done.results_digest)
    rows: list[JudgedAnswer] = []
    rated: list[Rated] = []
    entries: list[Mapping[str, Any]] = []
    for index, (item, outcome) in enumerate(zip(items, results, strict=True)):
        said = votes(TaskSpec.model_validate(item["task"]), item["answer"], outcome["evidence"])
        row = _row(calibration, index, item, outcome, said)
        rows.append(row)
        rated.append(_rated(row, item, said))
        entries += _entries(outcome["evidence"])
    JudgedAnswer.objects.bulk_create(rows, batch_size=_BATCH)
    figures = calibrate(rated)
    calibration.state, calibration.finished_at = Calibration.State.DONE, timezone.now()
    calibration.results_digest = done.results_digest
    calibration.figures, calibration.kappa = _json(figures._asdict()), figures.kappa
    calibration.doubts = doubts(figures)
    calibration.prompt_tokens = sum(entry.get("prompt_tokens", 0) for entry in entries)
    calibration.completion_tokens = sum(entry.get("completion_tokens", 0) for entry in entries)
    calibration.cost_usd = cost_usd(calibration.judge.project, entries)
    calibration.save()
    say = f"{calibration.judge} is calibrated"
    publish(project=unit.project, topic=unit.owner, kind="CalibrationFinished", say=say)


def calibration_failed(unit: WorkUnit, error: str) -> None:
    """A calibration that could not run says nothing about the judge."""
    calibration = _of(unit)
    if calibration.state != Calibration.State.RUNNING:
        return
    calibration.state, calibration.finished_at = Calibration.State.FAILED, timezone.now()
    calibration.error = error[:2000]
    calibration.save(update_fields=["state", "finished_at", "error"])
    publish(project=unit.project, topic=unit.owner, kind="CalibrationFailed")


def _of(unit: WorkUnit) -> Calibration:
    rows = Calibration.objects.select_for_update(of=("self",)).select_related("judge__project")
    return rows.get(pk=int(unit.owner.rpartition(":")[2]))


def _row(
    calibration: Calibration,
    index: int,
    item: Mapping[str, Any],
    outcome: Mapping[str, Any],
    said: list[Vote],
) -> JudgedAnswer:
    state = outcome["states"][-1]
    judged = {"passed": True, "failed": False}.get(state)
    return JudgedAnswer(
        calibration=calibration,
        index=index,
        title=item["title"][:160],
        origin=item["origin"],
        case_id=item["case"],
        gold_id=item["gold"],
        human=item["human"],
        judged=judged,
        silence="" if judged is not None else "error" if state == "error" else _silence(said),
        score=outcome["scores"][-1],
        reasons=storable(outcome["reasons"]),
        votes=[
            {
                "voice": voice_name(vote.voice).removeprefix("judge "),
                "passed": vote.passed,
                "silence": vote.silence,
                "reason": storable(vote.reason),
            }
            for vote in said
        ],
    )


def _silence(said: list[Vote]) -> str:
    """Why the panel decided nothing: what most of its silent voices have in common, or disagreement."""
    kinds = Counter(vote.silence for vote in said if vote.silence)
    return kinds.most_common(1)[0][0] if kinds else "disagreement" if said else "missing"


def _rated(row: JudgedAnswer, item: Mapping[str, Any], said: list[Vote]) -> Rated:
    return Rated(
        source=item["task"]["source"],
        human=row.human,
        judged=row.judged,
        silence=row.silence,
        score=row.score,
        length=len(item["answer"]),
        votes=tuple(vote.passed for vote in said),
        firsts=sum(vote.firsts for vote in said),
        picks=sum(vote.picks for vote in said),
        compared=sum(vote.picks > 0 and vote.passed is not None for vote in said),
        contradictions=sum(vote.contradicts for vote in said),
    )


def _entries(evidence: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    report = evidence.get(EVIDENCE)
    given = report.get("judgements") if isinstance(report, Mapping) else None
    yield from (entry for entry in given or () if isinstance(entry, Mapping))


def _json(value: Any) -> Any:
    """Named tuples as objects, so that a reader of the column needs no places."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    return {key: _json(item) for key, item in value.items()} if isinstance(value, dict) else value


def _nothing(kind: str) -> str:
    if kind == Judge.Kind.PAIRWISE:
        return (
            "There is nothing to compare with yet. Label cases with a corrected answer, or add gold answers "
            "with a baseline."
        )
    return "There are no answers judged by people yet. Label cases in Failures, or add gold answers."
