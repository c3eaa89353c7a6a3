import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.stats import benjamini_hochberg, mean_of_groups_se, pass_at_k, pass_hat_k


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_count_all_draws(case: tuple[int, int, int]) -> None:
    n, passed, k = case
    draws = list(itertools.combinations([True] * passed + [False] * (n - passed), k))

    assert pass_at_k(n, passed, k) == pytest.approx(sum(any(draw) for draw in draws) / len(draws))
    assert pass_hat_k(n, passed, k) == pytest.approx(sum(all(draw) for draw in draws) / len(draws))


def test_more_draws_than_samples_have_no_answer() -> None:
    assert pass_at_k(3, 1, 4) is None
    assert pass_hat_k(3, 3, 4) is None


def test_the_error_of_an_unweighted_mean_of_groups() -> None:
    assert mean_of_groups_se([0.03, 0.04]) == pytest.approx(0.025)
    assert mean_of_groups_se([0.03, None]) is None
    assert mean_of_groups_se([]) is None


def test_benjamini_hochberg_agrees_with_a_worked_example() -> None:
    found = benjamini_hochberg([0.01, 0.04, 0.03, 0.005, 0.5])

    assert found.adjusted == pytest.approx((0.025, 0.05, 0.05, 0.025, 0.5))
    assert found.rejected == (True, True, True, True, False)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_adjusted_p_values_keep_the_order_and_never_shrink(p_values: list[float]) -> None:
    adjusted = benjamini_hochberg(p_values).adjusted

    assert all(q >= p or math.isclose(q, p) for p, q in zip(p_values, adjusted, strict=True))
    ordered = [q for _, q in sorted(zip(p_values, adjusted, strict=True))]
    assert ordered == sorted(ordered)
