"""The few distribution functions that the numbers rest on, typed.

``scipy.stats`` is imported where it is used: every process imports this module, few need that one, and it
takes half a second.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from scipy import special

_NORMAL = NormalDist()


def normal_quantile(p: float) -> float:
    """z with P(Z ≤ z) = p, for 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def student_quantile(p: float, df: float) -> float:
    """t with P(T ≤ t) = p for ``df`` ≥ 1 degrees of freedom."""
    return float(special.stdtrit(df, p))


def student_cdf(t: float, df: float) -> float:
    """P(T ≤ t) for ``df`` ≥ 1 degrees of freedom."""
    return float(special.stdtr(df, t))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X ≤ k) for X ~ Bin(n, p)."""
    return float(special.bdtr(k, n, p))


def log_beta(a: float, b: float) -> float:
    """ln B(a, b) for positive a, b."""
    return float(special.betaln(a, b))


def beta_quantile(p: float, a: float, b: float) -> float:
    """x with P(X ≤ x) = p for X ~ Beta(a, b)."""
    return float(special.betaincinv(a, b, p))


def beta_binomial_cdf(k: int, n: int, a: float, b: float) -> float:
    """P(X ≤ k) for X ~ BetaBin(n, a, b)."""
    from scipy.stats import betabinom

    return float(betabinom.cdf(k, n, a, b))


def average_ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1, equal values sharing the mean of theirs; same length as ``values``."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=float)
