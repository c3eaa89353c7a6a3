"""The few distribution functions that the numbers rest on, typed."""

from statistics import NormalDist

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
