"""Quantiles of a stream in bounded memory, mergeable and exact to take back.

A sketch counts values by the power of ``GAMMA`` they fall under, so a quantile is off by at most
``ERROR`` of itself. Source: Masson, Rim, Lee, DDSketch, VLDB 2019, section 2. Deviation: no cap on
the number of bins, because milliseconds between a thousandth and a day fill some 1,100 of them.
"""

import math
from collections.abc import Mapping, Sequence

ERROR = 0.01  # relative
GAMMA = (1 + ERROR) / (1 - ERROR)
SMALLEST = 1e-3  # what is smaller, zero included, counts as this
_LOG = math.log(GAMMA)
_FIRST = math.ceil(math.log(SMALLEST) / _LOG)


def bin_of(value: float) -> int | None:
    """The bin of one value; None for what is no size (negative, NaN, infinite)."""
    if not math.isfinite(value) or value < 0:
        return None
    return _FIRST if value <= SMALLEST else math.ceil(math.log(value) / _LOG)


def value_of(index: int) -> float:
    """The value that stands for a bin: within ``ERROR`` of every value in it."""
    return float(2 * GAMMA**index / (GAMMA + 1))


def quantiles(bins: Mapping[int, int], shares: Sequence[float]) -> list[float] | None:
    """The values under which ``shares`` in [0, 1] of the counted values lie; None for no values."""
    count = sum(bins.values())
    if count <= 0:
        return None
    ordered = sorted(bins.items())
    found = []
    for share in shares:
        rank, seen = math.ceil(share * count) or 1, 0
        for index, held in ordered:
            seen += held
            if seen >= rank:
                found.append(value_of(index))
                break
    return found
