"""Failed results become captures, and so cases of the failures inbox.

Results of held-out and validation cases stay out, whoever asks: what a training is measured by, or chosen
by, must not become what it learns from.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.evals.models import Case, Result, Run
from apps.feedback.services import case_capture
from domain.contracts import TaskSpec

APART = (Case.Split.HELD_OUT, Case.Split.VALIDATION)


def results_capture(*, run: Run, by: Actor) -> int:
    """Capture every failed result of ``run`` that is not captured yet; returns how many.

    Errors are not failures and stay out, and so do held-out and validation cases. A result keeps its
    external id, so capturing again makes nothing twice. Raises Conflict while the run goes on or when
    nothing failed, Refused when nothing that failed may be captured.
    """
    if run.state in (Run.State.PENDING, Run.State.RUNNING):
        raise Conflict("Wait until the run has ended, then capture its failures.", code="run_not_ended")
    failed = run.results.filter(state=Result.State.FAILED)
    if not failed.exists():
        raise Conflict("This run has no failed results.", code="nothing_failed")
    free = failed.exclude(case__split__in=APART)
    apart = failed.filter(case__split__in=APART).count()
    if apart and not free.exists():
        raise Refused(
            f"{'The failed result belongs' if apart == 1 else f'All {apart:,} failed results belong'} to "
            "held-out or validation cases. These are never trained on, so they cannot become failures to "
            "learn from.",
            code="held_out",
        )
    done, refused = 0, 0
    for result in free.filter(captured_at=None).select_related("case"):
        try:
            with transaction.atomic():
                _capture(run, result)
        except Refused:  # too large to be captured, or it holds images: it stays uncaptured
            refused += 1
        else:
            done += 1
    if refused and not done:
        raise Refused(
            f"{refused:,} failed results cannot be captured: they hold images or are too large.",
            code="not_capturable",
        )
    if done:
        audit(actor=by, action="run.capture_failures", obj=run, captured=done, refused=refused, apart=apart)
        publish(project=run.project, topic=run.lineage_key, kind="FailuresCaptured", count=done)
    return done


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
