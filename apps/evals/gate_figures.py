"""The figures of a gate's rule as people read them: names in words, each value with its unit."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from domain.cost import cost_text

# What a figure is called, and how it is written. A rule's kind comes first where it means something else.
_WORDS: dict[str, tuple[str, str]] = {
    "coverage": ("Scored of all samples", "share"),
    "min_coverage": ("Needed, at least", "share"),
    "errors": ("Errors", "count"),
    "total": ("Samples", "count"),
    "rate": ("Pass rate", "share"),
    "error_rate.rate": ("Errors of all samples", "share"),
    "max_rate": ("Allowed, at most", "share"),
    "min_rate": ("Needed, at least", "share"),
    "low": ("Lower limit", "share"),
    "high": ("Upper limit", "share"),
    "n": ("Scored samples", "count"),
    "clusters": ("Sources", "count"),
    "planned": ("Samples that would settle it", "count"),
    "non_inferiority.mean": ("Difference", "points"),
    "non_inferiority.low": ("Lower limit", "points"),
    "non_inferiority.high": ("Upper limit", "points"),
    "non_inferiority.n": ("Pairs of cases", "count"),
    "non_inferiority.effective_n": ("Worth as many independent pairs", "count"),
    "non_inferiority.planned": ("Pairs for 80 % power", "count"),
    "margin": ("Worse by at most", "size"),
    "alpha": ("Risk of a wrong pass", "share"),
    "baseline": ("Baseline", "text"),
    "cases": ("Cases asked about", "count"),
    "p95_ms": ("Latency, p95", "ms"),
    "latency.n": ("Answers with a latency", "count"),
    "max_ms": ("Allowed, at most", "ms"),
    "usd": ("Cost per answer", "usd"),
    "tokens": ("Tokens per answer", "count"),
    "alone": ("Without the rule on coverage", "text"),
}


def figure_pairs(kind: str, figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of a rule of ``kind``, for a list of facts; lists and what is not known are left to their own place."""
    return [
        _pair(kind, name, value)
        for name, value in figures.items()
        if value is not None and not isinstance(value, list | dict)
    ]


def _pair(kind: str, name: str, value: Any) -> tuple[str, str]:
    words, unit = _WORDS.get(f"{kind}.{name}") or _WORDS.get(name) or (name.replace("_", " "), "text")
    return words, _written(unit, value)


def _written(unit: str, value: Any) -> str:
    if unit == "text" or not isinstance(value, int | float):
        return str(value)
    match unit:
        case "share":
            return f"{100 * value:.4g} %"
        case "points":
            return f"{100 * value:+.1f} points".replace("-", "−")
        case "size":
            return f"{100 * value:g} point{'' if value == 0.01 else 's'}"
        case "ms":
            return f"{value:,.0f} ms"
        case "usd":
            return cost_text(Decimal(str(value)))
    return f"{value:,.1f}".removesuffix(".0")
