"""REST: a suite over versions and endpoints, as the dashboard shows it."""

from decimal import Decimal
from typing import Any, Literal

from ninja import Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.evals.api_scores import ScoreOut
from apps.evals.models import Suite
from apps.evals.selectors.dashboard import Point, dashboard_of

router = Router(tags=["evals"])


class PointOut(Schema):
    """Latencies are milliseconds, costs US dollars; None is "not measured" or "price unknown"."""

    run_id: int
    suite_version: int
    suite_digest: str
    target: str
    score: ScoreOut
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    cost_per_1000_usd: Decimal | None
    cost_per_pass_usd: Decimal | None


class FamilyOut(Schema):
    family: str
    scores: list[ScoreOut | None]


class DashboardOut(Schema):
    """``scores`` of a family stand in the order of ``points``."""

    points: list[PointOut]
    families: list[FamilyOut]
    left_out: int


@router.get("/suites/{suite_id}/dashboard", response={200: DashboardOut, 404: ErrorOut})
def suite_dashboard(
    request: ApiRequest,
    suite_id: int,
    edition: Literal["", "standard", "high_speed"] = "",
    family: str = "",
    by: Literal["target", "run"] = "target",
    days: int = 0,
) -> Any:
    """The newest finished run of each target, or every run; of one family where ``family`` names it."""
    request.auth.require("read")
    suite = get_or_404(Suite.objects.filter(project=request.auth.project), pk=suite_id)
    found = dashboard_of(suite, edition=edition, family=family, by=by, days=max(0, min(days, 36_500)))
    return {
        "points": [_point(point) for point in found.points],
        "families": [
            {"family": row.family, "scores": [ScoreOut.of(one) if one else None for one in row.summaries]}
            for row in found.families
        ],
        "left_out": found.left_out,
    }


def _point(point: Point) -> dict[str, Any]:
    ttft, latency = point.figures.ttft, point.figures.latency
    return {
        "run_id": point.run.pk,
        "suite_version": point.run.suite_version.number,
        "suite_digest": point.run.suite_version.digest,
        "target": point.label,
        "score": ScoreOut.of(point.summary),
        "ttft_p50_ms": ttft.p50 if ttft else None,
        "ttft_p95_ms": ttft.p95 if ttft else None,
        "latency_p50_ms": latency.p50 if latency else None,
        "latency_p95_ms": latency.p95 if latency else None,
        "cost_per_1000_usd": point.cost_per_1000,
        "cost_per_pass_usd": point.cost_per_pass,
    }
