"""Runs: started, paused, resumed, cancelled, retried. What the workers report is in ``batches``."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import Plan, units_cancel, units_create, units_hold, units_release
from apps.evals import selectors
from apps.evals.models import Run, SuiteVersion
from apps.evals.services.clock import clock_start, clock_stop
from apps.evals.services.figures import figures_begin
from apps.evals.services.lines import first_problem
from apps.versions.models import Deployment, EditionKind, ModelVersion
from apps.versions.selectors import engine_target, external_target, judge_targets
from domain.contracts import RunEvalBatch, Sampling
from domain.contracts.tasks import EngineTarget
from domain.lifecycle import IllegalMove, state_after

QUEUE = "eval"
MAX_SAMPLES = 4_000_000
MAX_BATCH = 256
MAX_CONCURRENCY = 1024


def run_start(
    *,
    suite_version: SuiteVersion,
    version: ModelVersion | None = None,
    edition_kind: str = EditionKind.STANDARD,
    deployment: Deployment | None = None,
    sampling: dict[str, Any] | None = None,
    batch_size: int = 32,
    concurrency: int = 16,
    cache: bool = False,
    by: Actor,
) -> Run:
    """Start a run against an edition of ``version``, or against an external ``deployment``.

    ``batch_size`` cases are one unit of work, of which ``concurrency`` episodes go on at once. With
    ``cache`` answers of earlier runs to the very same request stand in for new ones. Raises Refused when
    the target is not exactly one of the two, belongs to another project, or a setting is invalid.
    """
    project = suite_version.suite.project
    if (version is None) == (deployment is None):
        raise Refused("Choose one target: a version of yours, or an endpoint.", code="target_unclear")
    if any(row is not None and row.project_id != project.pk for row in (version, deployment)):
        raise Refused("The target belongs to another project.", code="target_foreign")
    if version is not None and edition_kind not in EditionKind.values:
        raise Refused(f"“{edition_kind}” is not an edition.", code="edition_unknown")
    drawn = parse_sampling(sampling or {})
    _check_range("Cases per batch", batch_size, MAX_BATCH)
    _check_range("Episodes at once", concurrency, MAX_CONCURRENCY)
    total = suite_version.count * drawn.samples
    if total > MAX_SAMPLES:
        raise Refused(
            f"This run would take {total:,} samples; at most {MAX_SAMPLES:,} are run at once.",
            code="run_too_large",
        )
    with transaction.atomic():
        asked, now = _deployment(version, edition_kind, deployment), timezone.now()
        run = Run.objects.create(
            project=project,
            suite_version=suite_version,
            version=version,
            edition_kind=edition_kind if version else "",
            deployment=asked,
            sampling=drawn.model_dump(mode="json"),
            batch_size=batch_size,
            concurrency=min(concurrency, asked.max_concurrency) if version is None else concurrency,
            cache=cache,
            input_usd_per_mtok=asked.input_usd_per_mtok,
            output_usd_per_mtok=asked.output_usd_per_mtok,
            state=Run.State.RUNNING,
            total=total,
            created_by=by.name,
            started_at=now,
            running_since=now,
        )
        figures_begin(run)
        _plan(run, range(suite_version.count))
        if version is not None:
            lineage_record(
                project=project,
                parent=Node(version.lineage_key, version.number, version.get_absolute_url()),
                child=Node(run.lineage_key, f"run {run.pk}", run.get_absolute_url()),
            )
        audit(actor=by, action="run.start", obj=run, cases=suite_version.count, samples=drawn.samples)
        publish(project=project, topic=run.lineage_key, kind="RunStarted")
    return run


def parse_sampling(values: dict[str, Any]) -> Sampling:
    try:
        return Sampling.model_validate(values)
    except ValidationError as error:
        raise Refused(f"Sampling, {first_problem(error)}.", code="sampling_invalid") from None


def run_pause(*, run: Run, by: Actor) -> None:
    """Send nothing more. What is being asked is finished and kept; the rest waits to be resumed."""
    with transaction.atomic():
        _lock_units(run)
        locked = _acted(run, "pause")
        clock_stop(locked)
        locked.save(update_fields=["state", "ran_s", "running_since"])
        held = units_hold(owner=locked.lineage_key)
        audit(actor=by, action="run.pause", obj=locked, units=held)
        publish(
            project=locked.project, topic=locked.lineage_key, kind="RunPaused", say=f"Run {locked.pk} paused"
        )


def run_resume(*, run: Run, by: Actor) -> None:
    """Go on where the run was paused: nothing that is done is asked again."""
    with transaction.atomic():
        _lock_units(run)
        locked = _acted(run, "resume")
        clock_start(locked, done=max(0, locked.total - locked.waiting))
        locked.save(update_fields=["state", "running_since", "done_before"])
        units_release(owner=locked.lineage_key)
        audit(actor=by, action="run.resume", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="RunResumed")


def run_cancel(*, run: Run, by: Actor) -> None:
    """Stop what has not run; what was finished stays, the rest counts as cancelled."""
    with transaction.atomic():
        _lock_units(run)
        locked = _acted(run, "cancel")
        clock_stop(locked)
        locked.finished_at, locked.waiting = timezone.now(), 0
        locked.save(update_fields=["state", "finished_at", "waiting", "ran_s", "running_since"])
        units_cancel(owner=locked.lineage_key)
        audit(actor=by, action="run.cancel", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="RunCancelled")


def run_retry_errors(*, run: Run, by: Actor) -> int:
    """Run again the cases that ended in an error; returns how many. Scored results are kept.

    The one way from "done" back to "running": the run was over, its errors were not answers.
    """
    with transaction.atomic():
        locked = _acted(run, "retry_errors")
        indexes = selectors.indexes_to_retry(locked)
        if not indexes:
            raise Conflict("This run has no errors to retry.", code="nothing_to_retry")
        locked.finished_at, locked.error = None, ""
        locked.retries += 1
        _plan(locked, indexes)
        clock_start(locked, done=max(0, locked.total - locked.waiting))
        locked.save(
            update_fields=["state", "finished_at", "error", "retries", "running_since", "done_before"]
        )
        audit(actor=by, action="run.retry_errors", obj=locked, cases=len(indexes))
        publish(project=locked.project, topic=locked.lineage_key, kind="RunStarted")
    return len(indexes)


_NOT_ENDED = ("Wait until the run has ended, then retry its errors.", "run_not_ended")
_WHY_NOT = {
    ("retry_errors", "pending"): _NOT_ENDED,
    ("retry_errors", "running"): _NOT_ENDED,
    ("retry_errors", "paused"): (
        "Resume the run first; its errors can be retried at its end.",
        "run_not_ended",
    ),
    ("retry_errors", "cancelled"): ("A cancelled run stays as it is. Start a new one.", "run_cancelled"),
}


def _acted(run: Run, action: str) -> Run:
    """The locked row in the state that ``action`` leads to, not saved yet; Conflict where it may not."""
    rows = Run.objects.select_for_update(of=("self",)).select_related("project", "suite_version")
    locked = rows.get(pk=run.pk)
    try:
        locked.state = state_after(action, locked.state)
    except IllegalMove as error:
        why, code = _WHY_NOT.get((action, locked.state), (str(error), "illegal_move"))
        raise Conflict(why, code=code) from None
    return locked


def _lock_units(run: Run) -> None:
    """Before the run, whatever is done to both: a report locks its unit first, and two orders would wait
    for each other."""
    units = WorkUnit.objects.filter(owner=run.lineage_key).open().select_for_update().order_by("pk")
    list(units.values_list("pk", flat=True))


def _check_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise Refused(f"{name} must lie between 1 and {most:,}.", code="setting_invalid")


def _deployment(version: ModelVersion | None, edition_kind: str, deployment: Deployment | None) -> Deployment:
    """The row that the run's target is served by."""
    if version is None:
        assert deployment is not None
        return deployment
    target = engine_target(version, edition_kind)  # Refused if no engine serves the edition
    engines = Deployment.objects.filter(project=version.project_id).engines()
    return engines.get(edition_kind=edition_kind, base_url=target.base_url)


def _target(run: Run) -> EngineTarget:
    if run.version is not None:
        return engine_target(run.version, run.edition_kind)
    return external_target(run.deployment, run.lineage_key)


def _plan(run: Run, indexes: Sequence[int] | range) -> None:
    """Cut into batches what is to be asked; ``run.waiting`` says how many samples that are."""
    units_create(
        project=run.project,
        kind="eval_batch",
        owner=run.lineage_key,
        queue=QUEUE,
        priority=5,
        plans=_plans(run, indexes),
    )
    run.waiting = len(indexes) * run.sampling["samples"]
    run.save(update_fields=["waiting"])


def _plans(run: Run, indexes: Sequence[int] | range) -> Iterator[Plan]:
    message = RunEvalBatch(
        tasks_digest=run.suite_version.tasks_digest,
        indexes=(),
        sampling=Sampling.model_validate(run.sampling),
        target=_target(run),
        concurrency=run.concurrency,
        judges=judge_targets(run.project, run.lineage_key),
        cache=run.cache,
        journal=run.lineage_key,
    )
    for start in range(0, len(indexes), run.batch_size):
        batch = tuple(indexes[start : start + run.batch_size])
        yield Plan(f"eval:{run.pk}:{run.retries}:{start}", message.model_copy(update={"indexes": batch}))


def eval_batch_renewed(unit: WorkUnit) -> dict[str, Any]:
    """The payload with targets as they are now: a run may wait longer than its tokens are good for.

    Where the target is gone the old one stays, and the worker says why it cannot be asked.
    """
    run = Run.objects.select_related("project", "version__base", "deployment").get(
        pk=unit.owner.rpartition(":")[2]
    )
    try:
        target = _target(run)
    except Refused:
        return dict(unit.payload)
    judges = judge_targets(run.project, run.lineage_key)
    return {
        **unit.payload,
        "target": target.model_dump(mode="json"),
        "judges": {name: judge.model_dump(mode="json") for name, judge in judges.items()},
    }
