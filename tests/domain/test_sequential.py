import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.sequential import ArmCounts, Segment, difference_sequence, harm, log_e_value, sample_ratio


def segment(weight: float, canary: tuple[int, int], control: tuple[int, int]) -> Segment:
    return Segment(weight, ArmCounts(*canary), ArmCounts(*control))


@given(st.integers(0, 12), st.floats(0.01, 0.99))
def test_the_e_value_is_a_fair_bet_on_each_next_event(m: int, share: float) -> None:
    for k in range(m + 1):
        now = log_e_value(k, m, share)
        bet = share * math.exp(log_e_value(k + 1, m + 1, share) - now)
        bet += (1 - share) * math.exp(log_e_value(k, m + 1, share) - now)

        assert bet == pytest.approx(1.0)


def test_without_events_there_is_no_evidence() -> None:
    assert log_e_value(0, 0, 0.1) == pytest.approx(0.0)
    assert harm([]).log_e == 0.0
    assert not harm([segment(0.1, (50, 0), (450, 0))]).shown(0.05)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_zero_or_one_cannot_be_tested(share: float) -> None:
    with pytest.raises(ValueError, match="strictly"):
        log_e_value(1, 2, share)


def test_segments_multiply_and_those_without_two_arms_are_left_out() -> None:
    first, second = segment(0.1, (100, 9), (900, 20)), segment(0.5, (200, 12), (200, 5))
    full = segment(1.0, (100, 50), (0, 0))

    assert harm([first, second]).log_e == pytest.approx(harm([first]).log_e + harm([second]).log_e)
    assert harm([first, full]).log_e == harm([first]).log_e


def test_large_counts_stay_finite() -> None:
    found = harm([segment(0.1, (10**7, 10**7), (9 * 10**7, 0))])

    assert math.isfinite(found.e_value)
    assert found.shown(1e-9)


def test_a_canary_that_fails_less_shows_no_harm_whatever_the_evidence() -> None:
    found = harm([segment(0.5, (1000, 10), (1000, 200))])

    assert found.log_e > math.log(20)
    assert not found.shown(0.05)


@pytest.mark.parametrize(("failures", "units"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(failures: int, units: int) -> None:
    with pytest.raises(ValueError, match="between 0 and units"):
        ArmCounts(units, failures)


def test_equal_arms_watched_after_every_unit_are_rarely_called_harmful() -> None:
    rng = np.random.default_rng(11)
    alarms = sum(_ever_harmful(rng, 0.1, 0.05, 0.05, 3000) is not None for _ in range(600))

    assert alarms / 600 <= 0.05


def test_equal_arms_over_a_ramp_are_rarely_called_harmful() -> None:
    rng = np.random.default_rng(12)
    alarms = 0
    for _ in range(300):
        first = _counts(rng, 0.1, 0.04, 0.04, 600)
        second = _counts(rng, 0.5, 0.04, 0.04, 600)
        states = [[segment(0.1, *state)] for state in first[::5]]
        states += [[segment(0.1, *first[-1]), segment(0.5, *state)] for state in second[::5]]
        alarms += any(harm(state).shown(0.05) for state in states)

    assert alarms / 300 <= 0.05


def test_a_worse_canary_is_caught_in_time() -> None:
    rng = np.random.default_rng(13)
    times = [_ever_harmful(rng, 0.1, 0.06, 0.02, 12_000) for _ in range(120)]
    caught = [time for time in times if time is not None]

    assert len(caught) >= 115
    assert 1000 <= np.median(caught) <= 3000


def test_units_in_their_shares_are_ok_and_no_units_are_unknown() -> None:
    assert sample_ratio([segment(0.1, (100, 0), (900, 0))]).state == "ok"
    assert sample_ratio([segment(0.1, (0, 0), (0, 0))]).state == "unknown"
    assert sample_ratio([]).state == "unknown"


def test_swapped_or_leaking_arms_are_a_mismatch() -> None:
    assert sample_ratio([segment(0.1, (900, 0), (100, 0))]).state == "mismatch"
    assert sample_ratio([segment(0.1, (180, 0), (820, 0))]).state == "mismatch"


def test_a_right_split_watched_after_every_unit_is_rarely_a_mismatch() -> None:
    rng = np.random.default_rng(14)
    alarms = 0
    for _ in range(200):
        on_canary = np.cumsum(rng.random(1000) < 0.1)
        alarms += any(log_e_value(int(k), n, 0.1) >= math.log(1000) for n, k in enumerate(on_canary, start=1))

    assert alarms / 200 <= 0.005


def test_an_empty_arm_has_no_difference() -> None:
    assert difference_sequence([]) is None
    assert difference_sequence([segment(0.1, (0, 0), (90, 3))]) is None
    assert difference_sequence([segment(1.0, (100, 3), (0, 0))]) is None


def test_no_failure_on_a_few_units_proves_no_safety() -> None:
    interval = difference_sequence([segment(0.5, (20, 0), (20, 0))])

    assert interval is not None
    assert interval.high > 0.1


def test_the_sequence_narrows_around_the_difference() -> None:
    few = difference_sequence([segment(0.5, (100, 10), (100, 5))])
    many = difference_sequence([segment(0.5, (10_000, 1000), (10_000, 500))])

    assert few is not None
    assert many is not None
    assert few.low < many.low < 0.05 < many.high < few.high


def test_rates_that_drift_while_the_weight_changes_are_no_difference() -> None:
    quiet, rough = segment(0.1, (1000, 10), (9000, 90)), segment(0.5, (5000, 1000), (5000, 1000))

    interval = difference_sequence([quiet, rough])

    assert interval is not None
    assert interval.low == pytest.approx(-interval.high)


@pytest.mark.parametrize(
    ("weight", "canary", "control"), [(0.5, 0.12, 0.1), (0.1, 0.07, 0.05), (0.1, 0.4, 0.38)]
)
def test_limits_watched_after_every_unit_miss_the_truth_rarely(
    weight: float, canary: float, control: float
) -> None:
    rng = np.random.default_rng(15)
    above = below = 0
    for _ in range(300):
        states = _counts(rng, weight, canary, control, 1500)[30::5]
        limits = [difference_sequence([segment(weight, *state)], 0.05) for state in states]
        found = [limit for limit in limits if limit is not None]
        above += any(limit.high < canary - control for limit in found)
        below += any(limit.low > canary - control for limit in found)

    assert above / 300 <= 0.05
    assert below / 300 <= 0.07


Pair = tuple[tuple[int, int], tuple[int, int]]


def _counts(rng: np.random.Generator, weight: float, canary: float, control: float, units: int) -> list[Pair]:
    """Cumulative (units, failures) of both arms after each unit."""
    on_canary = rng.random(units) < weight
    failed = rng.random(units) < np.where(on_canary, canary, control)
    columns: list[NDArray[np.int64]] = [
        np.cumsum(on_canary),
        np.cumsum(on_canary & failed),
        np.cumsum(~on_canary),
        np.cumsum(~on_canary & failed),
    ]
    return [((int(a), int(b)), (int(c), int(d))) for a, b, c, d in zip(*columns, strict=True)]


def _ever_harmful(
    rng: np.random.Generator, weight: float, canary: float, control: float, units: int
) -> int | None:
    """Units until harm is shown at 5 %, or None. Evidence only moves on a failure."""
    on_canary = rng.random(units) < weight
    failed = rng.random(units) < np.where(on_canary, canary, control)
    k = 0
    for m, time in enumerate(np.flatnonzero(failed), start=1):
        k += int(on_canary[time])
        if k > weight * m and log_e_value(k, m, weight) >= math.log(20):
            return int(time) + 1
    return None
