"""REST: training runs, their metrics and trajectories."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.feedback.models import Dataset
from apps.training import selectors, services
from apps.training.models import TrainingRun, Trajectory
from apps.versions.models import ModelVersion

router = Router(tags=["training"])


class TrainingRunIn(Schema):
    """``config``: groups, group_size, refills, concurrency and ``train`` (the trainer's numbers)."""

    name: str = Field(min_length=1, max_length=100)
    dataset_id: int
    parent_version_id: int
    config: dict[str, Any] = Field(default_factory=dict)
    steps: int = 100
    seed: int = 1
    start: bool = True


class TrainingRunOut(Schema):
    id: int
    name: str
    slug: str
    state: str
    dataset_id: int
    parent_version_id: int = Field(alias="parent_id")
    version_id: int | None
    steps: int
    seed: int
    config: dict[str, Any]
    policy_version: int
    error: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class TrainingRunDetailOut(TrainingRunOut):
    steps_done: int
    pass_rate: float | None


@router.get("/training/runs", response=list[TrainingRunOut])
def training_runs(request: ApiRequest, limit: int = 50) -> Any:
    request.auth.require("read")
    return selectors.runs_of(request.auth.project)[: max(1, min(limit, 200))]


@router.post("/training/runs", response={201: TrainingRunOut, 400: ErrorOut, 404: ErrorOut, 409: ErrorOut})
def training_run_create(request: ApiRequest, body: TrainingRunIn) -> Any:
    """Create a run, and start it unless ``start`` is false."""
    request.auth.require("training")
    project = request.auth.project
    run = services.run_create(
        project=project,
        name=body.name,
        dataset=get_or_404(Dataset.objects.filter(project=project), pk=body.dataset_id),
        parent=get_or_404(ModelVersion.objects.filter(project=project), pk=body.parent_version_id),
        config=body.config,
        steps=body.steps,
        seed=body.seed,
        by=request.auth,
    )
    if body.start:
        services.run_start(run=run, by=request.auth)
    return 201, run


@router.get("/training/runs/{run_id}", response=TrainingRunDetailOut)
def training_run(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("read")
    return _detail(_run(request, run_id))


def _act(name: str) -> Any:
    def act(request: ApiRequest, run_id: int) -> Any:
        request.auth.require("training")
        getattr(services, f"run_{name}")(run=_run(request, run_id), by=request.auth)
        return _detail(_run(request, run_id))

    act.__name__ = f"training_run_{name}"
    act.__doc__ = f"{name.capitalize()} the run."
    return act


for _name in ("start", "pause", "resume", "cancel"):
    router.post(
        f"/training/runs/{{run_id}}/{_name}",
        response={200: TrainingRunDetailOut, 404: ErrorOut, 409: ErrorOut},
    )(_act(_name))


class MetricsOut(Schema):
    """``series[name]`` is a list of ``[step, value]``."""

    series: dict[str, list[tuple[int, float]]]


@router.get("/training/runs/{run_id}/metrics", response=MetricsOut)
def training_metrics(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("read")
    return {"series": selectors.run_series(_run(request, run_id))}


class TrajectoryOut(Schema):
    id: int
    step: int
    task_key: str
    family: str
    sample: int
    policy_version: int
    state: str
    reward: float | None
    tokens: int
    flags: list[str]


@router.get("/training/runs/{run_id}/trajectories", response=list[TrajectoryOut])
def training_trajectories(
    request: ApiRequest, run_id: int, state: str = "", task: str = "", before: int = 0, limit: int = 100
) -> Any:
    """Newest first; page back with ``before`` = the last id you saw."""
    request.auth.require("read")
    rows = selectors.trajectories_of(_run(request, run_id), state=state, task=task)
    if before:
        rows = rows.filter(pk__lt=before)
    return rows[: max(1, min(limit, 1000))]


@router.get(
    "/training/trajectories/{trajectory_id}", response={200: dict[str, Any], 404: ErrorOut, 410: ErrorOut}
)
def training_trajectory(request: ApiRequest, trajectory_id: int) -> Any:
    """One trajectory whole: steps, tokens, log-probabilities, reward terms, verdict."""
    request.auth.require("read")
    row = get_or_404(Trajectory.objects.filter(run__project=request.auth.project), pk=trajectory_id)
    return selectors.trajectory_whole(row).model_dump(mode="json")


def _run(request: ApiRequest, run_id: int) -> TrainingRun:
    run: TrainingRun = get_or_404(selectors.runs_of(request.auth.project), pk=run_id)
    return run


def _detail(run: TrainingRun) -> dict[str, Any]:
    body = TrainingRunOut.from_orm(run).dict(by_alias=True)
    return {**body, "steps_done": selectors.steps_done(run), "pass_rate": selectors.latest(run, "pass_rate")}
