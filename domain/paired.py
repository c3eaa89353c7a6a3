"""Two runs on the same cases, compared by their paired differences.

Differences are always new − base. Two separate intervals are never laid side by side.
"""

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from domain.distributions import binomial_cdf, student_cdf
from domain.intervals import ClusteredMean, Interval, cluster_sums, clustered_mean
from domain.noninferiority import tango_interval
from domain.sample_size import needed_cases

ComparisonVerdict = Literal["better", "worse", "cannot_tell"]
_BOOTSTRAP_CELLS = 2_000_000


class PairedDifference(NamedTuple):
    """``mean`` is None without pairs; ``low``, ``high``, ``se`` are None where n is too small.

    ``flips_up`` counts pairs where the new run is higher; ``p_mcnemar`` is None unless all scores
    are 0 or 1. ``dropped`` counts pairs left out because one side has no score. ``p_value`` is two-sided
    and heeds clusters: McNemar's where every pair stands for itself, else that of the t interval.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    verdict: ComparisonVerdict
    p_mcnemar: float | None
    flips_up: int
    flips_down: int
    se: float | None
    dropped: int
    method: str
    p_value: float | None = None


def paired_difference(
    base: Sequence[float | None],
    new: Sequence[float | None],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
) -> PairedDifference:
    """Compare scores of the same cases [n]. One entry per case: average repeated samples first.

    Source: Miller, arXiv 2411.00640, section 4.2 (paired differences, clustered). Deviation: where
    the standard error is 0 it proves nothing; pass/fail scores then get Tango's interval with every
    cluster counted once, other scores get none.
    """
    if not len(base) == len(new) == len(clusters):
        raise ValueError("base, new and clusters must have equal length")
    pairs = [
        (float(old), float(young), cluster)
        for old, young, cluster in zip(base, new, clusters, strict=True)
        if old is not None and young is not None
    ]
    differences = [young - old for old, young, _ in pairs]
    up, down = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    binary = bool(pairs) and all(score in (0.0, 1.0) for pair in pairs for score in pair[:2])

    estimate = clustered_mean(differences, [cluster for _, _, cluster in pairs], confidence)
    interval, se = estimate.interval, estimate.se
    if interval is not None and se is not None and se < 1e-12:
        interval = _interval_without_spread(estimate.mean or 0.0, estimate.clusters, confidence, binary)
        se = None
    return PairedDifference(
        mean=estimate.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        n=estimate.n,
        clusters=estimate.clusters,
        verdict=_verdict(interval),
        p_mcnemar=mcnemar_exact(up, down) if binary else None,
        flips_up=up,
        flips_down=down,
        se=se,
        dropped=len(base) - len(pairs),
        method="n too small" if interval is None else f"paired, {interval.method}",
        p_value=None if interval is None else _p_value(estimate.mean or 0.0, se, estimate, binary, up, down),
    )


def mcnemar_exact(up: int, down: int) -> float:
    """Two-sided p = min(1, 2 · P(Bin(up + down, ½) ≤ min(up, down)))."""
    if up < 0 or down < 0:
        raise ValueError("counts cannot be negative")
    return min(1.0, 2.0 * binomial_cdf(min(up, down), up + down, 0.5)) if up + down else 1.0


def cluster_bootstrap(
    base: Sequence[float],
    new: Sequence[float],
    clusters: Sequence[Hashable],
    rng: np.random.Generator,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval | None:
    """Percentile interval of the mean difference, whole clusters drawn with replacement: a check on
    ``paired_difference``. None with fewer than two clusters.

    Clusters of equal sum and size are one kind; how often each kind is drawn is multinomial, so pass/fail
    runs of any size cost a handful of kinds per resample.
    """
    differences = np.asarray(new, dtype=np.float64) - np.asarray(base, dtype=np.float64)
    if not np.isfinite(differences).all():
        raise ValueError("scores must be finite")
    sums = cluster_sums(differences, clusters)
    sizes = cluster_sums(np.ones_like(differences), clusters)
    if len(sums) < 2:
        return None
    kinds, counts = np.unique(np.stack([sums.round(9), sizes]), axis=1, return_counts=True)
    shares = counts / counts.sum()
    means = np.empty(resamples)
    rows = max(1, _BOOTSTRAP_CELLS // len(counts))  # how many resamples fit in memory at once
    for start in range(0, resamples, rows):
        drawn = rng.multinomial(len(sums), shares, size=min(rows, resamples - start))
        means[start : start + rows] = (drawn @ kinds[0]) / (drawn @ kinds[1])
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(float(low), float(high), len(differences), "cluster bootstrap", len(sums))


def more_cases(difference: PairedDifference, delta: float) -> int | None:
    """How many cases beyond those seen would settle a true difference ``delta``; None without pairs.

    The variance per case is the observed one, clusters included; where nothing varied, the share of
    flips with one imagined flip more stands in for it.
    """
    if difference.n == 0:
        return None
    flips = difference.flips_up + difference.flips_down
    if difference.se is None:
        variance = (flips + 1) / (difference.n + 2)
    else:
        variance = difference.se**2 * difference.n
    return max(0, needed_cases(delta, variance) - difference.n)


def _p_value(
    mean: float, se: float | None, estimate: ClusteredMean, binary: bool, up: int, down: int
) -> float:
    if binary and estimate.clusters == estimate.n:
        return mcnemar_exact(up, down)
    if se is None:  # nothing varied: every cluster votes once
        return mcnemar_exact(estimate.clusters, 0) if abs(mean) > 0.5 else 1.0
    return min(1.0, 2.0 * student_cdf(-abs(mean) / se, estimate.clusters - 1))


def _interval_without_spread(mean: float, groups: int, confidence: float, binary: bool) -> Interval | None:
    if not binary:
        return None
    up, down = (groups if mean > 0.5 else 0), (groups if mean < -0.5 else 0)
    return tango_interval(up, down, groups, confidence)


def _verdict(interval: Interval | None) -> ComparisonVerdict:
    if interval is None or interval.low <= 0.0 <= interval.high:
        return "cannot_tell"
    return "better" if interval.low > 0.0 else "worse"
