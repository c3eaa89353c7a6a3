"""Failed results become captures, and so cases of the failures inbox.

Results of held-out and validation cases stay out, whoever asks: what a training is measured by, or chosen
by, must not become what it learns from.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.core.permissions import Actor, system_actor
from apps.core.registries import Progress
from apps.core.services import audit
from apps.core.units import unit_create
from apps.core.web_units import QUEUE
from apps.evals.models import Case, Result, Run
from apps.evals.selectors.results import capture_owner
from apps.feedback.services import case_capture
from domain.contracts import TaskSpec
from domain.contracts.base import Contract

APART = (Case.Split.HELD_OUT, Case.Split.VALIDATION)
UNIT = "results_capture"
AT_ONCE = 200  # about a second of a request
_CHUNK = 100  # captured in one transaction


class CaptureWork(Contract):
    """``by`` asked for it; the trail carries that name."""

    run_id: int
    by: str


def results_capture(*, run: Run, by: Actor) -> int | None:
    """Capture every failed result of ``run`` that is not captured yet; returns how many, or None while a
    worker does it, because there are many.

    Errors are not failures and stay out, and so do held-out and validation cases. A result keeps its
    external id, so capturing again makes nothing twice. Raises Conflict while the run goes on or when
    nothing failed, Refused when nothing that failed may be captured.
    """
    if run.state in (Run.State.PENDING, Run.State.RUNNING):
        raise Conflict("Wait until the run has ended, then capture its failures.", code="run_not_ended")
    failed = run.results.filter(state=Result.State.FAILED)
    if not failed.exists():
        raise Conflict("This run has no failed results.", code="nothing_failed")
    if not _free(run).exists():
        apart = failed.filter(case__split__in=APART).count()
        raise Refused(
            f"{'The failed result belongs' if apart == 1 else f'All {apart:,} failed results belong'} to "
            "held-out or validation cases. These are never trained on, so they cannot become failures to "
            "learn from.",
            code="held_out",
        )
    if _free(run).filter(captured_at=None)[: AT_ONCE + 1].count() > AT_ONCE:
        _send(run, by)
        return None
    return _captured(run, by, lambda done: None)


def results_capture_work(unit: WorkUnit, progress: Progress) -> dict[str, Any]:
    """What a worker does where there are many; another attempt goes on where the last one was lost."""
    asked = CaptureWork.model_validate(unit.payload)
    run = Run.objects.select_related("project", "version", "suite_version").get(pk=asked.run_id)
    total = _free(run).filter(captured_at=None).count()

    def told(done: int) -> None:
        if progress(done=done, total=total):
            publish(project=run.project, topic=run.lineage_key, kind="FailuresCaptured", count=done)

    return {"captured": _captured(run, system_actor(run.project, asked.by), told)}


def results_capture_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """The page of the run is told."""
    run = CaptureWork.model_validate(unit.payload).run_id
    publish(project=unit.project, topic=f"evals.run:{run}", kind="FailuresCaptured", count=result["captured"])


def results_capture_failed(unit: WorkUnit, error: str) -> None:
    """What is captured stays captured; the unit says why the rest is not."""
    run = CaptureWork.model_validate(unit.payload).run_id
    publish(project=unit.project, topic=f"evals.run:{run}", kind="CaptureFailed")


def _send(run: Run, by: Actor) -> None:
    """One unit at a time for a run."""
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        units = WorkUnit.objects.filter(owner=capture_owner(run))
        if units.open().exists():
            return
        unit_create(
            project=run.project,
            kind=UNIT,
            key=f"results_capture:{run.pk}:{units.count()}",
            owner=capture_owner(run),
            queue=QUEUE,
            message=CaptureWork(run_id=run.pk, by=by.name),
        )
        publish(project=run.project, topic=run.lineage_key, kind="CaptureStarted")


def _captured(run: Run, by: Actor, told: Callable[[int], None]) -> int:
    done, refused, after = 0, 0, 0
    waiting = _free(run).filter(captured_at=None).select_related("case").order_by("pk")
    while rows := list(waiting.filter(pk__gt=after)[:_CHUNK]):
        with transaction.atomic():
            for result in rows:
                try:
                    with transaction.atomic():
                        _capture(run, result)
                except Refused:  # too large to be captured, or it holds images: it stays uncaptured
                    refused += 1
                else:
                    done += 1
        after = rows[-1].pk
        told(done + refused)
    if refused and not done:
        raise Refused(
            f"{refused:,} failed results cannot be captured: they hold images or are too large.",
            code="not_capturable",
        )
    if done:
        apart = run.results.filter(state=Result.State.FAILED, case__split__in=APART).count()
        audit(actor=by, action="run.capture_failures", obj=run, captured=done, refused=refused, apart=apart)
        publish(project=run.project, topic=run.lineage_key, kind="FailuresCaptured", count=done)
    return done


def _free(run: Run) -> QuerySet[Result]:
    return run.results.filter(state=Result.State.FAILED).exclude(case__split__in=APART)


def _capture(run: Run, result: Result) -> None:
    task = TaskSpec.model_validate(result.case.task)
    case_capture(
        project=run.project,
        source="eval",
        external_id=f"evals.result:{result.pk}",
        content=_content(task, result.answer),
        family=task.family,
        cluster=task.source,
        version=run.version,
        failed=True,
    )
    result.captured_at = timezone.now()
    result.save(update_fields=["captured_at"])


def _content(task: TaskSpec, answer: str) -> dict[str, Any]:
    """What was asked and answered, and what judged it, so that a correction can be judged alike."""
    content: dict[str, Any] = {
        "messages": [message.model_dump(mode="json", exclude_none=True) for message in task.messages],
        "answer": answer,
        "tools": list(task.tools),
        "verifier": task.verifier.model_dump(mode="json"),
    }
    if task.reference is not None:
        content["reference"] = task.reference
    return content
