"""How many cases a comparison needs, and what the cases at hand could have shown."""

import math

from domain.distributions import normal_quantile


def needed_cases(
    delta: float,
    omega2: float,
    sigma2_base: float = 0.0,
    sigma2_new: float = 0.0,
    samples_base: int = 1,
    samples_new: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """Cases that show a true difference ``delta``.

    Source: Miller, arXiv 2411.00640, eq. 9: n = (z_{α/2} + z_β)² (ω² + σ_A²/K_A + σ_B²/K_B) / δ²;
    ω² is the variance of case-level differences, σ² the variance of samples inside a case.
    """
    if delta <= 0:
        raise ValueError("delta must be positive")
    z = _z_sum(alpha / 2, power)
    variance = omega2 + sigma2_base / samples_base + sigma2_new / samples_new
    return math.ceil(z * z * variance / (delta * delta))


def needed_pairs(discordance: float, margin: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Pairs that a one-sided non-inferiority test needs when both sides are equal:
    (z_α + z_β)² · discordance / margin²."""
    if margin <= 0:
        raise ValueError("margin must be positive")
    z = _z_sum(alpha, power)
    return math.ceil(z * z * discordance / (margin * margin))


def needed_for_floor(rate: float, floor: float, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Rows with which the lower limit of a true ``rate`` lies above ``floor``; None where it never does:
    (z_{α/2} √(f(1−f)) + z_β √(p(1−p)))² / (p − f)², the usual size of a one-sample test."""
    if rate <= floor:
        return None
    spread = normal_quantile(1 - alpha / 2) * math.sqrt(floor * (1 - floor))
    spread += normal_quantile(power) * math.sqrt(rate * (1 - rate))
    return math.ceil((spread / (rate - floor)) ** 2)


def smallest_difference(se: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true difference that a comparison with standard error ``se`` finds with chance ``power``."""
    return _z_sum(alpha / 2, power) * se


def sample_variance(passed: int, scored: int) -> float | None:
    """Unbiased variance of one sample inside a case, from ``passed`` of ``scored``; None below two."""
    if not 0 <= passed <= scored:
        raise ValueError("passed must lie between 0 and scored")
    return None if scored < 2 else passed * (scored - passed) / (scored * (scored - 1))


def _z_sum(alpha: float, power: float) -> float:
    return normal_quantile(1 - alpha) + normal_quantile(power)
