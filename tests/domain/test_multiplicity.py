"""Benjamini and Hochberg's rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from domain.multiplicity import benjamini_hochberg

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30)

# The fifteen p values of Benjamini and Hochberg 1995, section 4.
PUBLISHED = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
    0.6528, 0.7590, 1.0000,
]  # fmt: skip


def test_the_published_example_keeps_the_four_smallest() -> None:
    assert sum(benjamini_hochberg(PUBLISHED, 0.05).rejected) == 4
    assert benjamini_hochberg(PUBLISHED, 0.05).rejected[:4] == (True,) * 4


@given(shares)
def test_adjusted_values_are_scipys(values: list[float]) -> None:
    assert benjamini_hochberg(values).adjusted == pytest.approx(
        tuple(scipy_stats.false_discovery_control(values))
    )


@given(shares)
def test_the_order_does_not_matter_and_nothing_gets_smaller(values: list[float]) -> None:
    found = benjamini_hochberg(values)
    back = benjamini_hochberg(values[::-1])

    assert back.adjusted == pytest.approx(found.adjusted[::-1])
    assert all(after >= before - 1e-12 for before, after in zip(values, found.adjusted, strict=True))


def test_among_true_nulls_a_finding_is_rare() -> None:
    rng = np.random.default_rng(1)
    wrong = sum(any(benjamini_hochberg(list(rng.random(20))).rejected) for _ in range(1000))

    assert wrong / 1000 < 0.07


def test_a_p_value_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        benjamini_hochberg([1.2])
