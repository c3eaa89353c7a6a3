"""Planned sizes, checked by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.intervals import wilson
from domain.paired import paired_difference
from domain.sample_size import (
    needed_cases,
    needed_for_floor,
    needed_pairs,
    sample_variance,
    smallest_difference,
)


def test_needed_cases_follow_the_formula() -> None:
    assert needed_cases(0.03, omega2=1 / 9) == 969  # Miller 2411.00640, section 5
    assert needed_cases(0.03, 0.05, 0.1, 0.1, 10, 10) < needed_cases(0.03, 0.05, 0.1, 0.1)
    with pytest.raises(ValueError, match="positive"):
        needed_cases(0.0, 0.1)
    with pytest.raises(ValueError, match="positive"):
        needed_pairs(0.1, 0.0)


def test_the_needed_cases_find_the_difference_in_about_four_of_five_trials() -> None:
    up, down = 0.15, 0.07  # a true difference of 8 points
    n = needed_cases(0.08, omega2=up + down - (up - down) ** 2)
    rng, found, trials = np.random.default_rng(3), 0, 300
    for _ in range(trials):
        draw = rng.random(n)
        base, new = np.where(draw < up, 0.0, 1.0), np.where((draw >= up) & (draw < up + down), 0.0, 1.0)
        found += paired_difference(list(base), list(new), range(n)).verdict == "better"

    assert 0.72 < found / trials < 0.88


@given(st.floats(0.01, 0.2), st.floats(0.01, 0.5))
def test_the_smallest_difference_undoes_the_needed_cases(delta: float, variance: float) -> None:
    n = needed_cases(delta, variance)

    assert smallest_difference((variance / n) ** 0.5) <= delta * (1 + 1e-9)
    if n > 1:
        assert smallest_difference((variance / (n - 1)) ** 0.5) > delta * (1 - 1e-6)


def test_the_size_for_a_floor_lifts_the_lower_limit_above_it_in_about_four_of_five_trials() -> None:
    n = needed_for_floor(0.85, 0.8)
    assert n is not None
    rng = np.random.default_rng(9)
    lows = [wilson(int(passed), n) for passed in rng.binomial(n, 0.85, size=300)]

    assert 0.7 < sum(low is not None and low.low >= 0.8 for low in lows) / 300 < 0.9


def test_no_size_lifts_a_rate_above_a_floor_that_it_does_not_reach() -> None:
    assert needed_for_floor(0.8, 0.8) is None
    assert needed_for_floor(0.7, 0.8) is None


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_variance_of_samples_is_numpys(counts: tuple[int, int]) -> None:
    passed, n = counts

    assert sample_variance(passed, n) == pytest.approx(np.var([1.0] * passed + [0.0] * (n - passed), ddof=1))
    assert sample_variance(1, 1) is None
