"""Numbers of evaluations: one import for intervals, comparisons, summaries and the small formulas.

Rates and means live in ``intervals``, comparisons of two runs in ``paired``, margins in
``noninferiority``, planning in ``sample_size``, many slices in ``multiplicity``, words in ``summary``.
"""

import math
from collections.abc import Sequence

from domain.intervals import ClusteredMean, Interval, clustered_mean, clustered_rate, wilson
from domain.multiplicity import Discoveries, benjamini_hochberg
from domain.noninferiority import NonInferiority, non_inferior, non_inferiority, tango_interval
from domain.paired import (
    ComparisonVerdict,
    PairedDifference,
    cluster_bootstrap,
    mcnemar_exact,
    more_cases,
    paired_difference,
)
from domain.sample_size import (
    needed_cases,
    needed_for_floor,
    needed_pairs,
    sample_variance,
    smallest_difference,
)
from domain.summary import (
    GATE_COVERAGE,
    RunSummary,
    coverage_text,
    mean_by_case,
    score_text,
    summarize,
    verdict_sentence,
)

__all__ = [
    "GATE_COVERAGE",
    "ClusteredMean",
    "ComparisonVerdict",
    "Discoveries",
    "Interval",
    "NonInferiority",
    "PairedDifference",
    "RunSummary",
    "benjamini_hochberg",
    "cluster_bootstrap",
    "clustered_mean",
    "clustered_rate",
    "coverage_text",
    "mcnemar_exact",
    "mean_by_case",
    "mean_of_groups_se",
    "more_cases",
    "needed_cases",
    "needed_for_floor",
    "needed_pairs",
    "non_inferior",
    "non_inferiority",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "sample_variance",
    "score_text",
    "smallest_difference",
    "summarize",
    "tango_interval",
    "verdict_sentence",
    "wilson",
]


def pass_at_k(n: int, passed: int, k: int) -> float | None:
    """Chance that at least one of k samples passes, unbiased from ``passed`` of ``n``; None for k > n.

    Source: Chen et al., arXiv 2107.03374, eq. 1: 1 − C(n−c, k) / C(n, k).
    """
    _check(n, passed, k)
    return None if k > n else 1.0 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float | None:
    """Chance that all of k samples pass, unbiased from ``passed`` of ``n``; None for k > n.

    Source: Yao et al., arXiv 2406.12045, section 3: C(c, k) / C(n, k).
    """
    _check(n, passed, k)
    return None if k > n else math.comb(passed, k) / math.comb(n, k)


def mean_of_groups_se(errors: Sequence[float | None]) -> float | None:
    """Standard error of the unweighted mean of k groups, √(Σ se²) / k; None where one is unknown."""
    known = [error for error in errors if error is not None]
    if not errors or len(known) != len(errors):
        return None
    return math.sqrt(sum(error * error for error in known)) / len(known)


def _check(n: int, passed: int, k: int) -> None:
    if not 0 <= passed <= n or k < 1:
        raise ValueError("0 <= passed <= n and k >= 1 are required")
