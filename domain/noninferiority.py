"""No worse than before, within a margin: Tango's score interval for paired proportions.

A margin is passed on evidence only. Where nothing varied the interval stays wide, so a zero standard
error passes nothing.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from domain.distributions import normal_quantile, student_quantile
from domain.intervals import Interval, clustered_mean
from domain.sample_size import needed_pairs

RuleState = Literal["passed", "failed", "undecided"]


class NonInferiority(NamedTuple):
    """``mean`` is new − base; ``low`` and ``high`` bound it, each at the one-sided ``alpha``.

    ``effective_n`` are the independent pairs that ``n`` pairs from ``clusters`` sources are worth;
    ``planned`` the pairs that show ``margin`` with 80 % chance if both sides are equal.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    effective_n: float
    margin: float
    alpha: float
    planned: int
    state: RuleState


def tango_interval(up: float, down: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Score interval for the difference of two paired proportions, (up − down) / n; None for n = 0.

    ``up`` pairs fail before and pass after, ``down`` the reverse, of ``n`` pairs in all. Source:
    T. Tango, Statistics in Medicine 17 (1998), eq. 4 and 5. It stays wide where nothing flipped.
    """
    if n == 0:
        return None
    low, high = tango_limits(up, down, n, normal_quantile(0.5 + confidence / 2))
    return Interval(low, high, round(n), "Tango")


def tango_limits(up: float, down: float, n: float, z: float) -> tuple[float, float]:
    """The differences at which Tango's score statistic is ``z`` and −``z``. Counts may be fractions."""
    if up < 0 or down < 0 or up + down > n * (1 + 1e-12):
        raise ValueError("flips must not exceed the number of pairs")
    return _root(up, down, n, z), _root(up, down, n, -z)


def non_inferior(up: float, down: float, n: float, margin: float, alpha: float = 0.05) -> bool | None:
    """Whether the new side is at most ``margin`` worse, one-sided at ``alpha``; None for n = 0."""
    interval = tango_interval(up, down, n, 1 - 2 * alpha)
    return None if interval is None else interval.low > -margin


def non_inferiority(
    base: Sequence[float | None],
    new: Sequence[float | None],
    clusters: Sequence[Hashable],
    margin: float,
    alpha: float = 0.05,
) -> NonInferiority:
    """Test the same cases [n], one mean score in [0, 1] a side, for a loss of at most ``margin``.

    "passed" where the lower limit lies above −margin, "failed" where the upper one lies below it.
    Deviations from Tango: means of several samples enter as fractions of a flip, Σd⁺ and Σd⁻, which
    overstates their variance because d² ≤ |d|; pairs that share sources count n / deff with deff the
    clustered variance over the independent one, at least 1, and the t quantile replaces z; where no
    difference varies every source counts once.
    """
    if not len(base) == len(new) == len(clusters):
        raise ValueError("base, new and clusters must have equal length")
    if not 0.0 < margin < 1.0:
        raise ValueError("the margin is a share between 0 and 1")
    rows = [
        (after - before, source)
        for before, after, source in zip(base, new, clusters, strict=True)
        if before is not None and after is not None
    ]
    differences = [difference for difference, _ in rows]
    n, groups = len(rows), len({source for _, source in rows})
    up, down = sum(d for d in differences if d > 0), -sum(d for d in differences if d < 0)
    flipped = sum(abs(d) for d in differences)
    design = _design_effect(differences, [source for _, source in rows], groups)
    planned = math.ceil(design * needed_pairs(min(1.0, (flipped + 1) / (n + 2)), margin, alpha))
    if groups < 2:
        mean = sum(differences) / n if n else None
        return NonInferiority(mean, None, None, n, groups, float(groups), margin, alpha, planned, "undecided")
    z = normal_quantile(1 - alpha) if groups == n else student_quantile(1 - alpha, groups - 1)
    low, high = tango_limits(up / design, down / design, n / design, z)
    state: RuleState = "passed" if low > -margin else "failed" if high < -margin else "undecided"
    return NonInferiority(
        sum(differences) / n, low, high, n, groups, n / design, margin, alpha, planned, state
    )


def _design_effect(differences: Sequence[float], sources: Sequence[Hashable], groups: int) -> float:
    n = len(differences)
    if groups in (0, n) or groups < 2:
        return 1.0
    alone = clustered_mean(differences, range(n)).se or 0.0
    together = clustered_mean(differences, sources).se or 0.0
    return n / groups if alone < 1e-12 else max(1.0, (together / alone) ** 2)


def _root(up: float, down: float, n: float, z: float) -> float:
    """The difference at which the score statistic equals ``z``; it falls from −1 to 1."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _score(middle, up, down, n) > z:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(delta: float, up: float, down: float, n: float) -> float:
    b = -up - down + (2 * n - up + down) * delta
    c = -down * delta * (1 - delta)
    q = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * q + delta * (1 - delta))
    distance = up - down - n * delta
    if variance <= 1e-12:
        return 0.0 if abs(distance) < 1e-9 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)
