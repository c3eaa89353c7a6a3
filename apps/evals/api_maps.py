"""REST: suites for the long-context map, and the maps of runs over them."""

from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.evals import selectors, services
from apps.evals.api_imports import SuiteVersionOut
from apps.evals.api_probes import TargetIn
from apps.evals.maps import run_maps
from apps.evals.services.longcontext import DEPTHS

router = Router(tags=["evals"])


class MapIn(TargetIn):
    """``kinds``: retrieval, similar, multi_hop, variables, aggregation. Without ``lengths`` (tokens) four
    that fit the model are chosen; ``depths`` are per cent."""

    name: str = Field(min_length=1, max_length=100)
    kinds: list[str] = Field(default_factory=lambda: ["retrieval"])
    lengths: list[int] = Field(default_factory=list)
    depths: list[int] = Field(default_factory=lambda: list(DEPTHS))
    per_cell: int = 4
    seed: int = 0


class CellOut(Schema):
    family: str
    length: int
    depth: int
    passed: int
    n: int
    lost: int
    rate: float | None


@router.post("/long-context-suites", response={201: SuiteVersionOut, 400: ErrorOut, 404: ErrorOut})
def context_suite_create(request: ApiRequest, body: MapIn) -> Any:
    request.auth.require("evals")
    project = request.auth.project
    return 201, services.context_suite_create(
        project=project,
        **body.chosen(project),
        name=body.name,
        kinds=body.kinds,
        lengths=body.lengths,
        depths=body.depths,
        per_cell=body.per_cell,
        seed=body.seed,
        by=request.auth,
    )


@router.get("/runs/{run_id}/map", response={200: list[CellOut], 404: ErrorOut})
def run_context_map(request: ApiRequest, run_id: int) -> Any:
    """Pass rate by family, length (tokens) and depth (per cent); empty for a suite without such tags."""
    request.auth.require("read")
    run = get_or_404(selectors.runs_of(request.auth.project), pk=run_id)
    return [
        {"family": family, "rate": cell.rate, **cell._asdict()}
        for family, found in run_maps(run).items()
        for row in found.rows
        for cell in row
    ]
