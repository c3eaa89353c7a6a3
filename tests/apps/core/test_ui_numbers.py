"""Numbers as people read them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.ui.numbers import age, ago, count, duration, number, percent, ranged, signed, unbroken

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_missing_share_is_no_data_and_never_zero() -> None:
    assert percent(None) == "no data"
    assert percent(0.0) == "0 %"


def test_a_share_is_no_finer_than_its_interval() -> None:
    assert ranged(0.575, 0.486, 0.664) == "57 % (49–66)"
    assert ranged(0.99512, 0.99498, 0.99526) == "99.51 % (99.50–99.53)"


def test_no_line_ends_between_a_number_and_its_unit_nor_within_a_count_of_cases() -> None:
    text = "71 % (64–77), n = 212, 40 sources: 5 % more, in 3 cases"

    assert unbroken(text) == "71\u00a0% (64–77), n\u00a0=\u00a0212, 40 sources: 5\u00a0% more, in 3 cases"


@pytest.mark.parametrize(
    ("value", "text"), [(1204, "1,204"), (-3.0, "−3"), (-0.2, "0"), (0.4, "0"), (1e6, "1,000,000")]
)
def test_numbers_have_thousands_and_a_real_minus(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(("value", "text"), [(6.24, "+6.2"), (-6.24, "−6.2"), (0.0, "0.0"), (0.04, "0.0")])
def test_differences_carry_their_sign_unless_they_round_to_zero(value: float, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.64, "640 ms"),
        (3, "3 s"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (187200, "2 d 4 h"),
        (None, "unknown"),
    ],
)
def test_durations_use_two_units_at_most(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9996, "1 s"), (1.9, "2 s"), (59.6, "1 min"), (119.6, "2 min"), (3599.9, "1 h"), (86399, "1 d")],
)
def test_durations_are_rounded_not_cut_off(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_every_duration_has_at_most_two_units(seconds: float) -> None:
    assert len(duration(seconds).split()) in (2, 4)


@pytest.mark.parametrize(
    ("back", "text"),
    [
        (timedelta(seconds=1), "just now"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=-2), "in 2 h"),
    ],
)
def test_moments_read_relative_to_now(back: timedelta, text: str) -> None:
    assert ago(_NOW - back, _NOW) == text


def test_age_says_how_long_something_waits() -> None:
    assert age(_NOW - timedelta(days=2, hours=4), _NOW) == "2 d 4 h"


def test_counts_follow_their_noun() -> None:
    assert [count(1, "case"), count(2, "case"), count(0, "entry", "entries")] == [
        "1 case",
        "2 cases",
        "0 entries",
    ]
