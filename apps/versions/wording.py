"""Small words for figures of a release."""

import math
from typing import Any


def e_words(log_e: float) -> str:
    """An e-value in few characters, from its natural logarithm."""
    if log_e > math.log(1e6):
        return "over a million"
    value = math.exp(log_e)
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.05 else "under 0.05"


def figure(evidence: dict[str, Any], name: str) -> float | None:
    value = evidence.get(name)
    return float(value) if value is not None else None


def percent(share: float) -> str:
    return f"{100 * share:g} %"
