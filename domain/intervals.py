"""Intervals for one rate or mean. Where the data cannot carry an interval the answer is None
("n too small"), never a width of zero."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.distributions import normal_quantile, student_quantile


class Interval(NamedTuple):
    """``low`` and ``high`` in the unit of the value; ``n`` scored rows; ``clusters`` independent
    sources, or None where every row stands for itself."""

    low: float
    high: float
    n: int
    method: str
    clusters: int | None = None


class ClusteredMean(NamedTuple):
    """``se`` and ``interval`` are None with fewer than two clusters; ``mean`` is None without rows."""

    mean: float | None
    se: float | None
    n: int
    clusters: int
    interval: Interval | None


class RateMoments(NamedTuple):
    """All that the interval of a clustered rate needs, as integers: ``n`` scored rows of which
    ``passed``, in ``clusters``; and over the clusters the sums of n², n·passed and passed²."""

    n: int
    passed: int
    clusters: int
    rows_rows: int
    rows_passed: int
    passed_passed: int


def wilson(passed: int, n: int, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval for ``passed`` of ``n`` independent rows; None for n = 0.

    Source: E. B. Wilson, JASA 22 (1927), eq. for the roots of |p − p̂| = z √(p(1−p)/n).
    """
    _check_count(passed, n)
    if n == 0:
        return None
    low, high = _wilson_bounds(passed / n, n, _z(confidence))
    return Interval(low, high, n, "Wilson")


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> ClusteredMean:
    """Mean of ``values`` [n] with a cluster-robust standard error over ``clusters`` [n].

    Source: Miller, arXiv 2411.00640, eq. 4: SE² = n⁻² Σ_c (Σ_{i∈c} (s_i − s̄))², which is the
    sum over all pairs inside a cluster. Deviation: times G/(G−1), and a t interval with G−1
    degrees of freedom, because suites have few sources.
    """
    if len(values) != len(clusters):
        raise ValueError("values and clusters must have equal length")
    if not values:
        return ClusteredMean(None, None, 0, 0, None)
    data = _finite(values)
    mean = float(data.mean())
    sums = cluster_sums(data - mean, clusters)
    groups = len(sums)
    if groups < 2:
        return ClusteredMean(mean, None, len(data), groups, None)
    se = math.sqrt(float((sums**2).sum()) * groups / (groups - 1)) / len(data)
    half = student_quantile(0.5 + confidence / 2, groups - 1) * se
    interval = Interval(mean - half, mean + half, len(data), "clustered t", groups)
    return ClusteredMean(mean, se, len(data), groups, interval)


def clustered_rate(
    passes: Sequence[bool], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Wilson's interval with n_eff = n / deff for pass/fail rows that share sources.

    deff = clustered variance / binomial variance, at least 1. At 0 and 100 % it cannot be
    estimated and every cluster counts as one row. None with fewer than two clusters. With
    clusters larger than one row the t quantile with G−1 degrees of freedom replaces z.
    """
    if len(passes) != len(clusters):
        raise ValueError("passes and clusters must have equal length")
    held: dict[Hashable, list[int]] = {}
    for value, cluster in zip(passes, clusters, strict=True):
        row = held.setdefault(cluster, [0, 0])
        row[0] += 1
        row[1] += bool(value)
    return rate_interval(moments_of((n, passed) for n, passed in held.values()), confidence)


def moments_of(clusters: Iterable[tuple[int, int]]) -> RateMoments:
    """From (rows, passed) of each cluster; a cluster without rows is none."""
    n = passed = count = rows_rows = rows_passed = passed_passed = 0
    for rows, good in clusters:
        n, passed, count = n + rows, passed + good, count + (rows > 0)
        rows_rows, rows_passed = rows_rows + rows * rows, rows_passed + rows * good
        passed_passed += good * good
    return RateMoments(n, passed, count, rows_rows, rows_passed, passed_passed)


def rate_se(moments: RateMoments) -> float | None:
    """The clustered standard error of a rate (see ``clustered_mean``); None under two clusters.

    Σ_c (passed_c − p n_c)² is taken in whole numbers, so that it does not depend on their order.
    """
    n, passed, groups = moments.n, moments.passed, moments.clusters
    if groups < 2:
        return None
    spread = n * n * moments.passed_passed - 2 * n * passed * moments.rows_passed
    spread += passed * passed * moments.rows_rows
    return math.sqrt(spread / n**2 * groups / (groups - 1)) / n


def rate_interval(moments: RateMoments, confidence: float = 0.95) -> Interval | None:
    """``clustered_rate`` from sums that were kept, however many rows they stand for."""
    n, groups, se = moments.n, moments.clusters, rate_se(moments)
    if se is None:
        return None
    rate = moments.passed / n
    if groups == n:
        low, high = _wilson_bounds(rate, n, _z(confidence))
        return Interval(low, high, n, "Wilson", groups)
    binomial = rate * (1 - rate) / n
    effective = float(groups) if binomial == 0.0 else n / max(1.0, se**2 / binomial)
    quantile = student_quantile(0.5 + confidence / 2, groups - 1)
    low, high = _wilson_bounds(rate, effective, quantile)
    return Interval(low, high, n, "Wilson, clustered", groups)


def cluster_sums(values: NDArray[np.float64], clusters: Sequence[Hashable]) -> NDArray[np.float64]:
    """Sum of ``values`` [n] inside each cluster: [G], in order of first appearance."""
    index: dict[Hashable, int] = {}
    places = [index.setdefault(cluster, len(index)) for cluster in clusters]
    sums: NDArray[np.float64] = np.bincount(places, weights=values, minlength=len(index)).astype(np.float64)
    return sums


def _wilson_bounds(rate: float, n: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0.0 else max(0.0, centre - half)
    high = 1.0 if rate == 1.0 else min(1.0, centre + half)
    return low, high


def _z(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError("confidence must lie between 0 and 1")
    return normal_quantile(0.5 + confidence / 2)


def _check_count(passed: int, n: int) -> None:
    if not 0 <= passed <= n:
        raise ValueError("passed must lie between 0 and n")


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        raise ValueError("scores must be finite")
    return data
