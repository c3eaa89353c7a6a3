import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.sketch import ERROR, SMALLEST, bin_of, quantiles, value_of

sizes = st.floats(SMALLEST, 1e9, allow_nan=False)


@given(sizes)
def test_a_bin_stands_for_its_values_within_the_stated_error(value: float) -> None:
    place = bin_of(value)

    assert place is not None
    assert abs(value_of(place) - value) <= ERROR * value * (1 + 1e-9)


@given(st.lists(sizes, min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_quantile_is_off_by_at_most_the_stated_error(values: list[float], share: float) -> None:
    bins: dict[int, int] = {}
    for value in values:
        place = bin_of(value)
        assert place is not None
        bins[place] = bins.get(place, 0) + 1

    found = quantiles(bins, [share])

    true = np.quantile(values, share, method="inverted_cdf")
    assert found is not None
    assert abs(found[0] - true) <= ERROR * true * (1 + 1e-9)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_what_is_no_size_has_no_bin(value: float) -> None:
    assert bin_of(value) is None


def test_no_values_have_no_quantile() -> None:
    assert quantiles({}, [0.5]) is None


def test_zero_counts_as_the_smallest() -> None:
    assert bin_of(0.0) == bin_of(SMALLEST)
