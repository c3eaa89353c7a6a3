"""REST: how scores and figures of a run, or of a part of it, are written."""

from typing import Any

from ninja import Schema

from domain.cost import cost_text
from domain.figures import Figures, PassAt, Percentiles
from domain.summary import RunSummary, coverage_text, score_text

_COUNTS = (
    "passed", "failed", "error", "unscored", "cancelled", "scored", "total", "pass_rate", "coverage",
)  # fmt: skip


class ScoreOut(Schema):
    """``pass_rate`` is passed / scored, beside ``coverage`` = scored / total; None is "no data"."""

    passed: int
    failed: int
    error: int
    unscored: int
    cancelled: int
    scored: int
    total: int
    pass_rate: float | None
    low: float | None
    high: float | None
    clusters: int | None
    coverage: float | None
    text: str
    coverage_text: str

    @staticmethod
    def of(summary: RunSummary) -> dict[str, Any]:
        interval = summary.interval
        return {
            **{name: getattr(summary, name) for name in _COUNTS},
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "clusters": interval.clusters if interval else None,
            "text": score_text(summary.pass_rate, interval, summary.scored),
            "coverage_text": coverage_text(summary),
        }


class PercentilesOut(Schema):
    """Milliseconds, each within 1 % of itself, over ``n`` answers that did not come from the cache."""

    p50: float
    p90: float
    p95: float
    p99: float
    n: int


class FiguresOut(Schema):
    """``cost_usd`` is an exact decimal as text, None where a price is unknown; judges are not in it.
    ``judged`` of ``answered`` answers got a verdict."""

    cost_usd: str | None
    cost_text: str
    prompt_tokens: int
    completion_tokens: int
    ttft_ms: PercentilesOut | None
    per_token_ms: PercentilesOut | None
    latency_ms: PercentilesOut | None
    attempts: int
    cached: int
    cached_share: float | None
    answered: int
    judged: int
    judged_share: float | None
    flagged: int
    score_mean: float | None

    @staticmethod
    def of(figures: Figures) -> dict[str, Any]:
        names = (
            "prompt_tokens", "completion_tokens", "attempts", "cached", "cached_share", "answered", "judged",
            "judged_share", "flagged", "score_mean",
        )  # fmt: skip
        return {
            **{name: getattr(figures, name) for name in names},
            "cost_usd": None if figures.cost_usd is None else f"{figures.cost_usd.normalize():f}",
            "cost_text": cost_text(figures.cost_usd),
            "ttft_ms": _percentiles(figures.ttft),
            "per_token_ms": _percentiles(figures.per_token),
            "latency_ms": _percentiles(figures.latency),
        }


class PassAtOut(Schema):
    """Over ``cases`` with at least ``k`` scored samples: pass@k (one of k passes), pass^k (all do)."""

    k: int
    cases: int
    pass_at_k: float
    pass_hat_k: float

    @staticmethod
    def of(row: PassAt) -> dict[str, Any]:
        return {"k": row.k, "cases": row.cases, "pass_at_k": row.any_rate, "pass_hat_k": row.all_rate}


def _percentiles(found: Percentiles | None) -> dict[str, Any] | None:
    return found._asdict() if found else None
