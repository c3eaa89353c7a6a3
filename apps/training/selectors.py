"""Reads of training: runs, curves, trajectories from their artifacts."""

import io
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import pyarrow.parquet as pq
from django.db.models import Count, Q, QuerySet

from apps.core.errors import Refused
from apps.core.models import Alert, Project, WorkUnit
from apps.feedback.models import (
    FailureCase,
    Family,
    GauntletEntry,
    GauntletOutcome,
    GauntletRun,
    TaskAsset,
    Verifier,
    VerifierAgreement,
)
from apps.feedback.selectors import gauntlet_of
from apps.feedback.verifiers import versions_of
from apps.training.models import Segment, TrainingRun, Trajectory
from artifacts import ArtifactMissing, get_store
from domain.contracts import Trajectory as WholeTrajectory
from domain.contracts.trajectory_table import from_row


class Watch(NamedTuple):
    """Counts of a run's trajectories. ``hidden`` are passes that the hidden verifier decided,
    ``canaries`` impossible tasks that were decided."""

    episodes: int
    errors: int
    flagged: int
    hidden: int
    hidden_failed: int
    canaries: int
    canary_passes: int

    @staticmethod
    def share(part: int, whole: int) -> float | None:
        return part / whole if whole else None


class Entries(NamedTuple):
    """Gauntlet entries of one origin: first those judged wrongly, then those not checked, then the rest."""

    title: str
    rows: list[GauntletEntry]
    checked: int
    right: int

    @property
    def all_right(self) -> bool:
        return self.right == len(self.rows)


def runs_of(project: Project) -> QuerySet[TrainingRun]:
    """Newest first, each with ``done``: how many of its steps have finished."""
    return (
        TrainingRun.objects.filter(project=project)
        .select_related("parent__base", "dataset", "version", "project")
        .annotate(done=Count("segments", filter=Q(segments__state=Segment.State.DONE)))
        .order_by("-pk")  # an annotated count drops the model's own order
    )


def steps_done(run: TrainingRun) -> int:
    return run.segments.filter(state=Segment.State.DONE).count()


def run_series(run: TrainingRun, names: list[str] | None = None) -> dict[str, list[tuple[int, float]]]:
    """Metric curves: ``{name: [(step, value), …]}``, steps ascending from 0."""
    rows = run.metrics.order_by("step")
    if names is not None:
        rows = rows.filter(name__in=names)
    series: dict[str, list[tuple[int, float]]] = {}
    for name, step, value in rows.values_list("name", "step", "value"):
        series.setdefault(name, []).append((step, value))
    return series


def latest(run: TrainingRun, name: str) -> float | None:
    return run.metrics.filter(name=name).order_by("-step").values_list("value", flat=True).first()


def open_units(run: TrainingRun) -> list[WorkUnit]:
    """What workers do for the run: what runs first, then what waits."""
    rows = WorkUnit.objects.filter(owner=run.lineage_key).open().defer("payload", "result").order_by("pk")
    order = [WorkUnit.State.RUNNING, WorkUnit.State.SENT, WorkUnit.State.PENDING]
    return sorted(rows, key=lambda unit: order.index(WorkUnit.State(unit.state)))


def watch_of(run: TrainingRun, *, step: int | None = None) -> Watch:
    """How many trajectories of the run (or of one step) look like gaming, and how many erred."""
    rows = Trajectory.objects.filter(run=run)
    if step is not None:
        rows = rows.filter(step=step)
    decided = Q(canary=True, state__in=["passed", "failed"])
    counted = {
        "episodes": Q(),
        "errors": Q(state="error"),
        "flagged": Q(flagged=True),
        "hidden": Q(hidden__in=["passed", "failed"]),
        "hidden_failed": Q(hidden="failed"),
        "canaries": decided,
        "canary_passes": Q(canary=True, state="passed"),
    }
    # The names of counts must not hide the columns that other counts look at.
    found = rows.order_by().aggregate(
        **{f"{name}_count": Count("pk", filter=which) for name, which in counted.items()}
    )
    return Watch(**{name: found[f"{name}_count"] for name in counted})


def alerts_of(run: TrainingRun) -> list[Alert]:
    """Open alarms about the run's trajectories."""
    keys = [f"training.{what}:{run.pk}" for what in ("canary", "hidden", "errors")]
    return list(Alert.objects.filter(project=run.project, key__in=keys, resolved_at=None))


def trajectories_of(
    run: TrainingRun, *, state: str = "", task: str = "", step: int | None = None, look: str = ""
) -> QuerySet[Trajectory]:
    """Newest first. ``task`` is part of a task's key, ``step`` an index from 0; ``look`` is "flagged",
    "hidden_failed" or "canary" (impossible tasks)."""
    rows = Trajectory.objects.filter(run=run)
    if look in _LOOKS:
        rows = rows.filter(_LOOKS[look])
    if state:
        rows = rows.filter(state=state)
    if task:
        rows = rows.filter(task_key__icontains=task)
    if step is not None:
        rows = rows.filter(step=step)
    return rows


_LOOKS = {
    "flagged": Q(flagged=True),
    "hidden_failed": Q(hidden="failed"),
    "canary": Q(canary=True),
}


def trajectory_whole(row: Trajectory) -> WholeTrajectory:
    """The trajectory from its artifact; Refused when the artifact is gone."""
    try:
        return _whole(row.digest, row.row)
    except ArtifactMissing:
        raise Refused(
            "The artifact of this trajectory is no longer stored.", code="artifact_missing", status=410
        ) from None


@lru_cache(maxsize=16)
def _whole(digest: str, row: int) -> WholeTrajectory:
    """A batch's artifact is read once while a person steps through one of its trajectories; the content
    of a digest never changes."""
    table = pq.read_table(io.BytesIO(get_store().get(digest))).slice(row, 1)
    return from_row(table.to_pylist()[0])


def siblings_of(row: Trajectory) -> list[Trajectory]:
    """Other answers to the same task from the same batch: what its reward is compared with."""
    return list(
        Trajectory.objects.filter(run_id=row.run_id, digest=row.digest, task_key=row.task_key).order_by(
            "row"
        )[:64]
    )


def asset_of(row: Trajectory) -> TaskAsset | None:
    """The task that a trajectory answers, with its verifier."""
    assets = row.run.dataset.assets.filter(task__id=row.task_key)
    return assets.select_related("verifier", "family").order_by("-number").first()


def verifiers_of(project: Project) -> QuerySet[Verifier]:
    """By name, newest revision first, with ``size`` and ``wrong``: entries, and those judged wrongly."""
    wrong = Q(entries__outcome__gt="") & (
        (Q(entries__must_pass=True) & ~Q(entries__outcome="passed"))
        | (Q(entries__must_pass=False) & ~Q(entries__outcome="failed"))
    )
    rows = Verifier.objects.filter(project=project).order_by("name", "-number")
    in_force = Q(entries__retired_at=None)
    return rows.annotate(
        size=Count("entries", filter=in_force), wrong=Count("entries", filter=in_force & wrong)
    )


def agreements_latest(verifiers: Iterable[Verifier]) -> dict[int, VerifierAgreement]:
    """The newest finished measurement of each version that has one. One query."""
    rows = VerifierAgreement.objects.filter(verifier__in=list(verifiers), error="").exclude(finished_at=None)
    return {row.verifier_id: row for row in rows.order_by("number")}


def labelled_cases(project: Project, verifier: Verifier | None, limit: int = 50) -> list[FailureCase]:
    """Labelled cases to try a verifier on, newest first; of its families where it has some."""
    rows = FailureCase.objects.filter(project=project).exclude(state=FailureCase.State.NEW)
    if verifier is not None:
        families = Family.objects.filter(verifier__in=versions_of(verifier))
        if names := list(families.values_list("name", flat=True)):
            rows = rows.filter(family__in=names)
    return list(rows.only("title", "family", "kind").order_by("-pk")[:limit])


def gauntlet_groups(verifier: Verifier) -> list[Entries]:
    """Entries in force, by origin. Each gets ``right``: judged as it must be; None while not checked."""
    groups: dict[str, list[GauntletEntry]] = {}
    for entry in gauntlet_of(verifier):
        if entry.retired_at is not None:
            continue
        wanted = "passed" if entry.must_pass else "failed"
        entry.right = entry.outcome == wanted if entry.outcome else None  # type: ignore[attr-defined]
        groups.setdefault(entry.get_origin_display(), []).append(entry)
    return [
        Entries(
            title,
            sorted(rows, key=lambda entry: (False, None, True).index(entry.right)),  # type: ignore[attr-defined]
            sum(entry.right is not None for entry in rows),  # type: ignore[attr-defined]
            sum(entry.right is True for entry in rows),  # type: ignore[attr-defined]
        )
        for title, rows in groups.items()
    ]


def retired_entries(verifier: Verifier) -> list[GauntletEntry]:
    return list(verifier.entries.exclude(retired_at=None).order_by("-retired_at"))


def gauntlet_runs_of(verifier: Verifier, limit: int = 20) -> list[GauntletRun]:
    """The gauntlet's history, newest first."""
    return list(verifier.runs.all()[:limit])


def history_of(entry: GauntletEntry, limit: int = 50) -> list[GauntletOutcome]:
    """What the runs said of an entry, newest first."""
    return list(entry.outcomes.select_related("run")[:limit])


def check_running(verifier: Verifier) -> bool:
    units = WorkUnit.objects.filter(owner=f"feedback.verifier:{verifier.pk}", kind="verify_batch")
    return units.open().exists()
