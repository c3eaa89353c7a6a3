"""REST: runs, what may be done with them, and their results."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.evals import held_out, selectors, services
from apps.evals.api_scores import FiguresOut, PassAtOut, ScoreOut
from apps.evals.models import Result, Run, SuiteVersion
from apps.evals.result_turns import turns_of
from apps.versions.models import Deployment, ModelVersion
from domain.cost import cost_text
from domain.seeds import episode_seed

router = Router(tags=["evals"])


class RunIn(Schema):
    """Give ``version_id`` and ``edition``, or ``deployment_id`` of an external endpoint. ``max_tokens``
    takes the place of what each case says; ``cache`` lets answers of earlier runs stand in."""

    suite_version_id: int
    version_id: int | None = None
    edition: str = "standard"
    deployment_id: int | None = None
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int = 0
    batch_size: int = 32
    concurrency: int = 16
    cache: bool = False


class RunOut(Schema):
    """``suite_digest`` names the exact cases that every score of this run speaks of."""

    id: int
    state: str
    suite_version_id: int
    suite_digest: str
    version_id: int | None
    edition: str = Field(alias="edition_kind")
    deployment_id: int
    sampling: dict[str, Any]
    batch_size: int
    concurrency: int
    cache: bool
    total: int
    retries: int
    error: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @staticmethod
    def resolve_suite_digest(row: Any) -> str:
        return str(row["suite_digest"] if isinstance(row, dict) else row.suite_version.digest)


class RunRowOut(RunOut):
    """``cost_usd`` is None where a price is unknown, ``elapsed_s`` leaves pauses out."""

    score: ScoreOut
    cost_usd: str | None
    cost_text: str
    elapsed_s: float | None


class RunDetailOut(RunOut):
    """``per_s`` and ``rest_s`` are the pace since the run last began to go on; None while it cannot be
    told. ``tags`` are what ``/slices`` takes beside "family"."""

    done: int
    elapsed_s: float | None
    per_s: float | None
    rest_s: float | None
    score: ScoreOut
    figures: FiguresOut
    pass_at: list[PassAtOut]
    tags: list[str]


@router.get("/runs", response=list[RunRowOut])
def runs(request: ApiRequest, limit: int = 50, before: int = 0) -> Any:
    """Newest first; page with ``before`` = the last id you saw."""
    request.auth.require("read")
    rows = selectors.runs_of(request.auth.project)
    if before:
        rows = rows.filter(pk__lt=before)
    return [
        {
            **RunOut.from_orm(card.run).dict(by_alias=True),
            "score": ScoreOut.of(card.summary),
            "cost_usd": None if card.cost_usd is None else f"{card.cost_usd.normalize():f}",
            "cost_text": cost_text(card.cost_usd),
            "elapsed_s": card.elapsed_s,
        }
        for card in selectors.run_cards(rows[: max(1, min(limit, 200))])
    ]


@router.post("/runs", response={201: RunOut, 400: ErrorOut, 404: ErrorOut})
def run_start(request: ApiRequest, body: RunIn) -> Any:
    request.auth.require("evals")
    project = request.auth.project
    suite_version = get_or_404(SuiteVersion.objects.filter(suite__project=project), pk=body.suite_version_id)
    version = deployment = None
    if body.version_id is not None:
        version = get_or_404(ModelVersion.objects.filter(project=project), pk=body.version_id)
    if body.deployment_id is not None:
        deployment = get_or_404(Deployment.objects.filter(project=project), pk=body.deployment_id)
    names = ("samples", "temperature", "top_p", "max_tokens", "seed")
    return 201, services.run_start(
        suite_version=suite_version,
        version=version,
        edition_kind=body.edition,
        deployment=deployment,
        sampling={name: getattr(body, name) for name in names},
        batch_size=body.batch_size,
        concurrency=body.concurrency,
        cache=body.cache,
        by=request.auth,
    )


@router.get("/runs/{run_id}", response=RunDetailOut)
def run_detail(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("read")
    return _detail(_run(request, run_id))


@router.post("/runs/{run_id}/pause", response={200: RunDetailOut, 409: ErrorOut})
def run_pause(request: ApiRequest, run_id: int) -> Any:
    """Nothing more is sent; what is being asked is finished and kept."""
    request.auth.require("evals")
    services.run_pause(run=_run(request, run_id), by=request.auth)
    return _detail(_run(request, run_id))


@router.post("/runs/{run_id}/resume", response={200: RunDetailOut, 409: ErrorOut})
def run_resume(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("evals")
    services.run_resume(run=_run(request, run_id), by=request.auth)
    return _detail(_run(request, run_id))


@router.post("/runs/{run_id}/cancel", response={200: RunDetailOut, 409: ErrorOut})
def run_cancel(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("evals")
    services.run_cancel(run=_run(request, run_id), by=request.auth)
    return _detail(_run(request, run_id))


@router.post("/runs/{run_id}/retry-errors", response={200: RunDetailOut, 409: ErrorOut})
def run_retry_errors(request: ApiRequest, run_id: int) -> Any:
    request.auth.require("evals")
    services.run_retry_errors(run=_run(request, run_id), by=request.auth)
    return _detail(_run(request, run_id))


class CapturedOut(Schema):
    captured: int


class CaptureOut(Schema):
    """``state`` is that of the unit of work (pending, sent, running, done, failed, cancelled); ``done`` of
    ``total`` failed results were looked at."""

    state: str
    done: int
    total: int
    error: str


@router.post("/runs/{run_id}/capture-failures", response={200: CapturedOut, 202: CaptureOut, 409: ErrorOut})
def run_capture_failures(request: ApiRequest, response: HttpResponse, run_id: int) -> Any:
    """Every failed result becomes a capture, once. Errors are not failures.

    More than 200 are captured by a worker: 202, and ``Location`` says where to ask how far it is.
    """
    request.auth.require("evals")
    run = _run(request, run_id)
    count = services.results_capture(run=run, by=request.auth)
    if count is None:
        response["Location"] = f"/api/v1/runs/{run.pk}/capture-failures"
        return 202, _capture_out(run)
    return 200, {"captured": count}


@router.get("/runs/{run_id}/capture-failures", response={200: CaptureOut, 404: ErrorOut})
def run_capture(request: ApiRequest, run_id: int) -> Any:
    """How far a worker is with the failures of a run."""
    request.auth.require("read")
    return _capture_out(_run(request, run_id))


def _capture_out(run: Run) -> dict[str, Any]:
    unit = selectors.capture_unit(run)
    if unit is None:
        raise Refused("No worker captures failures of this run.", code="not_found", status=404)
    told = unit.progress
    return {
        "state": unit.state,
        "done": told.get("done", 0),
        "total": told.get("total", 0),
        "error": unit.error,
    }


class SliceOut(Schema):
    value: str
    score: ScoreOut
    figures: FiguresOut


@router.get("/runs/{run_id}/slices", response=list[SliceOut])
def run_slices(request: ApiRequest, run_id: int, by: str = "family") -> Any:
    """What the results add up to by family, or by the values of the tag ``by``."""
    request.auth.require("read")
    run = _run(request, run_id)
    held_out.cut_checked(run.suite_version, by, request.auth)
    rows = selectors.family_rows(run) if by == "family" else selectors.slice_rows(run, by)
    return [
        {"value": row.value, "score": ScoreOut.of(row.summary), "figures": FiguresOut.of(row.figures)}
        for row in rows
    ]


class ResultOut(Schema):
    """``attempts`` are the requests that the answer took, ``attempt`` counts retries of errors."""

    id: int
    case: str = Field(alias="case.key")
    family: str
    sample: int
    seed: int
    state: str
    score: float | None
    answer: str
    verdict: dict[str, Any] | None
    flags: list[dict[str, Any]]
    error: str
    prompt_tokens: int
    completion_tokens: int
    ttft_ms: float | None
    per_token_ms: float | None
    latency_ms: float | None
    served_model: str
    attempts: int
    cached: bool
    attempt: int


class TurnOut(Schema):
    """``did`` is what the environment made of the turn: command, status, output, changes."""

    number: int
    seen: str
    said: str
    did: dict[str, Any] | None


@router.get("/runs/{run_id}/results/{result_id}/turns", response={200: list[TurnOut], 404: ErrorOut})
def result_turns(request: ApiRequest, run_id: int, result_id: int) -> Any:
    """What an agent did turn by turn; empty for an answer of one turn, and for a held-out case that you
    may not read."""
    request.auth.require("read")
    run = _run(request, run_id)
    row = get_or_404(Result.objects.filter(run=run).select_related("case__suite"), pk=result_id)
    if held_out.is_hidden(row.case, request.auth):
        return []
    return [
        {**turn._asdict(), "did": turn.did.model_dump(mode="json") if turn.did else None}
        for turn in turns_of(row)
    ]


@router.get("/runs/{run_id}/results", response=list[ResultOut])
def run_results(
    request: ApiRequest,
    run_id: int,
    state: str = "",
    family: str = "",
    tag: str = "",
    value: str = "",
    q: str = "",
    after: int = 0,
    limit: int = 100,
) -> Any:
    """Results by id; page with ``after`` = the last id you saw. ``value`` is that of ``tag``, as text;
    ``q`` is a part of the case's id."""
    request.auth.require("read")
    if state and state not in Result.State.values:
        raise Refused(f"“{state}” is not a state of a result.", code="state_unknown")
    run = _run(request, run_id)
    held_out.cut_checked(run.suite_version, tag and f"tag:{tag}", request.auth)
    rows = selectors.result_rows(run, q=q, state=state, family=family, tag=tag, value=value)
    page = rows.select_related("case").defer("case__task", "case__tags").filter(pk__gt=after)
    found = list(page[: max(1, min(limit, 1000))])
    held_out.hidden_results(found, request.auth)
    return _with_seeds(run, found)


def _with_seeds(run: Run, rows: Iterable[Result]) -> list[Result]:
    found = list(rows)
    for row in found:
        row.seed = episode_seed(run.sampling["seed"], row.case.key, row.sample)  # type: ignore[attr-defined]
    return found


def _run(request: ApiRequest, run_id: int) -> Run:
    run: Run = get_or_404(selectors.runs_of(request.auth.project), pk=run_id)
    return run


def _detail(run: Run) -> dict[str, Any]:
    tally = selectors.run_tally(run)
    done = selectors.run_progress(run, tally)["done"]
    pace = selectors.run_pace(run, done)
    return {
        **RunOut.from_orm(run).dict(by_alias=True),
        **pace._asdict(),
        "done": done,
        "score": ScoreOut.of(selectors.run_summary(run, tally)),
        "figures": FiguresOut.of(selectors.run_figures(run, tally)),
        "pass_at": [PassAtOut.of(row) for row in selectors.run_pass_at(run, tally)],
        "tags": selectors.tags_of(run),
    }
