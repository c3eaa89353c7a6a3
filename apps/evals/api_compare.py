"""REST: comparisons of runs, their slices and the cases that flipped."""

from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.evals import held_out, selectors
from apps.evals.api_scores import ScoreOut
from apps.evals.comparison import MOVES, Comparison, bootstrap, flips_of, flips_where, sliced
from apps.evals.models import Run
from domain.paired import PairedDifference

router = Router(tags=["evals"])


class DifferenceOut(Schema):
    """``mean`` is this run minus the other, paired over the same cases; None where n is too small."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    dropped: int = Field(description="Shared cases that one side did not score")
    verdict: str = Field(description="better, worse or cannot_tell")
    p_mcnemar: float | None
    p_value: float | None = Field(description="Two-sided, heeding clusters")
    flips_up: int
    flips_down: int
    method: str


class LeftOutOut(Schema):
    changed: int = Field(description="Cases whose revision differs between the two suite versions")
    only_base: int
    only_new: int
    examples: list[str]


class LimitsOut(Schema):
    low: float
    high: float


class ComparisonOut(DifferenceOut):
    sentence: str
    base: ScoreOut
    new: ScoreOut
    same_version: bool
    base_suite_digest: str = Field(description="The exact cases that ``base`` speaks of")
    new_suite_digest: str
    left_out: LeftOutOut
    bootstrap: LimitsOut | None = Field(description="A check on the interval: whole sources drawn anew")
    smallest_difference: float | None = Field(description="What so many cases show four times out of five")


class SliceOut(Schema):
    label: str
    small: bool = Field(description="n too small to read")
    adjusted_p: float | None = Field(description="After Benjamini–Hochberg, where many slices are compared")
    verdict: str
    difference: DifferenceOut


class FlipOut(Schema):
    case: str
    case_id: int
    better: bool
    base_result_id: int
    base_state: str
    new_result_id: int
    new_state: str
    why: str


@router.get("/runs/{run_id}/compare/{other_id}", response={200: ComparisonOut, 400: ErrorOut, 404: ErrorOut})
def run_compare(request: ApiRequest, run_id: int, other_id: int) -> Any:
    """Run ``run_id`` minus run ``other_id`` over the case revisions that both have."""
    found, run, other = _compared(request, run_id, other_id)
    limits = bootstrap(found)
    return {
        **_difference(found.difference),
        "sentence": found.sentence,
        "base": ScoreOut.of(found.base),
        "new": ScoreOut.of(found.new),
        "same_version": found.same_version,
        "base_suite_digest": other.suite_version.digest,
        "new_suite_digest": run.suite_version.digest,
        "left_out": found.left_out._asdict(),
        "bootstrap": {"low": limits.low, "high": limits.high} if limits else None,
        "smallest_difference": found.smallest,
    }


@router.get(
    "/runs/{run_id}/compare/{other_id}/slices",
    response={200: list[SliceOut], 400: ErrorOut, 404: ErrorOut},
)
def run_compare_slices(request: ApiRequest, run_id: int, other_id: int, by: str = "family") -> Any:
    """The difference on each value of ``by``: “family”, “source”, or a tag such as “tag:length”."""
    found, _, _ = _compared(request, run_id, other_id, by)
    return [
        {
            "label": row.label,
            "small": row.small,
            "adjusted_p": row.adjusted,
            "verdict": row.verdict,
            "difference": _difference(row.difference),
        }
        for row in sliced(found, by).rows
    ]


@router.get(
    "/runs/{run_id}/compare/{other_id}/flips",
    response={200: list[FlipOut], 400: ErrorOut, 404: ErrorOut},
)
def run_compare_flips(
    request: ApiRequest,
    run_id: int,
    other_id: int,
    moved: str = "",
    by: str = "",
    slice: str = "",
    offset: int = 0,
    limit: int = 100,
) -> Any:
    """Cases whose score moved, those to worse first. ``moved`` is worse or better."""
    if moved and moved not in MOVES:
        raise Refused(f"“{moved}” is not a way to move: worse or better.", code="move_unknown")
    found, run, other = _compared(request, run_id, other_id, by)
    rows = flips_where(found, moved=moved, axis=by, slice_label=slice)
    start = max(0, offset)
    return [
        {
            "case": flip.case.key,
            "case_id": flip.case.pk,
            "better": flip.up,
            "base_result_id": flip.before.pk,
            "base_state": flip.before.state,
            "new_result_id": flip.after.pk,
            "new_state": flip.after.state,
            "why": flip.before.why if flip.up else flip.after.why,
        }
        for flip in held_out.hidden_flips(
            flips_of(run, other, rows[start : start + max(1, min(limit, 1000))]), request.auth
        )
    ]


def _compared(request: ApiRequest, run_id: int, other_id: int, by: str = "") -> tuple[Comparison, Run, Run]:
    request.auth.require("read")
    run, other = _run(request, run_id), _run(request, other_id)
    held_out.cut_checked(run.suite_version, by, request.auth)
    return selectors.run_comparison(run, other, by), run, other


def _difference(found: PairedDifference) -> dict[str, Any]:
    return {name: getattr(found, name) for name in DifferenceOut.model_fields}


def _run(request: ApiRequest, run_id: int) -> Run:
    run: Run = get_or_404(selectors.runs_of(request.auth.project), pk=run_id)
    return run
