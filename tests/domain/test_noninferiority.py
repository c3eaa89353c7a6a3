"""Tango's interval against published figures, and the margin that nothing passes for free."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.noninferiority import non_inferior, non_inferiority, tango_interval, tango_limits
from domain.sample_size import needed_pairs

cells = st.integers(1, 80).flatmap(
    lambda n: st.integers(0, n).flatmap(lambda up: st.tuples(st.just(up), st.integers(0, n - up), st.just(n)))
)


@pytest.mark.parametrize(
    ("up", "down", "n", "confidence", "low", "high"),
    [
        # Airway hyper-responsiveness, Bentur et al. 2009; Tango's interval in Fagerland, Lydersen and
        # Laake, Statistics in Medicine 33 (2014): −0.517 to −0.026.
        (1, 7, 21, 0.95, -0.517, -0.026),
        # R package PropCIs 0.3, scoreci.mp(25, 28, 618, 0.9).
        (28, 25, 618, 0.90, -0.0148, 0.0247),
        # Disinfection of soft contact lenses, Tango 1998, section 5: 43 pairs agree, 1 favours the standard.
        (0, 1, 44, 0.90, -0.096, 0.037),
    ],
)
def test_tango_agrees_with_published_intervals(
    up: int, down: int, n: int, confidence: float, low: float, high: float
) -> None:
    interval = tango_interval(up, down, n, confidence)

    assert interval is not None
    digits = 4 if n == 618 else 3
    assert (round(interval.low, digits), round(interval.high, digits)) == (low, high)


@given(cells)
def test_tango_holds_the_estimate_and_mirrors(counts: tuple[int, int, int]) -> None:
    up, down, n = counts

    interval, mirror = tango_interval(up, down, n), tango_interval(down, up, n)

    assert interval is not None
    assert mirror is not None
    assert -1.0 <= interval.low <= (up - down) / n + 1e-9
    assert (up - down) / n - 1e-9 <= interval.high <= 1.0
    assert interval.low == pytest.approx(-mirror.high, abs=1e-6)


def test_nothing_flipped_leaves_the_interval_wide() -> None:
    assert tango_interval(0, 0, 50) == pytest.approx((-0.0714, 0.0714, 50, "Tango", None), abs=1e-3)
    assert tango_interval(0, 0, 0) is None


@given(st.floats(0, 3), st.floats(0, 3), st.integers(6, 60))
def test_more_flips_of_both_kinds_widen_the_interval(up: float, down: float, n: int) -> None:
    few, many = tango_limits(up, down, n, 1.96), tango_limits(up + 1, down + 1, n, 1.96)

    assert many[1] - many[0] >= few[1] - few[0] - 1e-9


def test_non_inferiority_needs_the_planned_number_even_without_a_flip() -> None:
    assert non_inferior(0, 0, 50, margin=0.02) is False
    assert non_inferior(0, 0, 400, margin=0.02) is True
    assert non_inferior(0, 0, 0, margin=0.02) is None
    assert needed_pairs(discordance=0.1, margin=0.02) == pytest.approx(1550, abs=10)


def test_a_zero_standard_error_passes_nothing() -> None:
    same = [1.0] * 40

    found = non_inferiority(same, same, range(40), margin=0.02)

    assert found.state == "undecided"
    assert found.mean == 0.0
    assert found.low is not None
    assert found.low < -0.02


def test_a_clear_loss_fails_and_a_large_equal_pair_passes() -> None:
    base = [1.0] * 200

    assert non_inferiority(base, [0.0] * 60 + [1.0] * 140, range(200), 0.05).state == "failed"
    assert non_inferiority(base * 4, base * 4, range(800), 0.02).state == "passed"


def test_what_was_not_scored_on_one_side_is_no_pair() -> None:
    found = non_inferiority([1.0, None, 1.0], [1.0, 1.0, None], "abc", 0.1)

    assert (found.n, found.low, found.state) == (1, None, "undecided")


def test_pairs_of_one_source_count_less() -> None:
    rng = np.random.default_rng(5)
    loss = np.repeat(rng.random(40) < 0.1, 10).astype(float)
    base, new = [1.0] * 400, list(1.0 - loss)

    alone = non_inferiority(base, new, range(400), 0.2)
    together = non_inferiority(base, new, [i // 10 for i in range(400)], 0.2)

    assert together.effective_n < 80 < alone.effective_n == 400
    assert (together.low or 0) < (alone.low or 0)
    assert together.planned > alone.planned


def test_equal_sources_without_any_spread_count_once_each() -> None:
    found = non_inferiority([1.0] * 100, [1.0] * 100, [i // 10 for i in range(100)], 0.1)

    assert found.effective_n == 10
    assert found.state == "undecided"


def test_half_flips_of_several_samples_count_as_halves() -> None:
    base, new = [1.0] * 100, [0.5] * 10 + [1.0] * 90

    halves = non_inferiority(base, new, range(100), 0.1)

    assert halves.mean == pytest.approx(-0.05)
    assert halves.low == pytest.approx(tango_limits(0, 5, 100, 1.6449)[0], abs=1e-4)


def test_a_truly_worse_side_passes_in_at_most_the_stated_share() -> None:
    rng, passed, trials = np.random.default_rng(7), 0, 400
    for _ in range(trials):  # exactly margin worse: 15 % lose, 5 % win
        draw = rng.random(300)
        base = np.where(draw < 0.15, 1.0, np.where(draw < 0.2, 0.0, 1.0))
        new = np.where(draw < 0.15, 0.0, 1.0)
        passed += non_inferiority(list(base), list(new), range(300), margin=0.1).state == "passed"

    assert passed / trials < 0.05 + 3 * (0.05 * 0.95 / trials) ** 0.5


def test_the_planned_pairs_show_the_margin_in_about_four_of_five_trials() -> None:
    n = needed_pairs(discordance=0.1, margin=0.05)
    rng, passed, trials = np.random.default_rng(11), 0, 300
    for _ in range(trials):
        draw = rng.random(n)
        base, new = np.where(draw < 0.05, 0.0, 1.0), np.where((draw >= 0.05) & (draw < 0.1), 0.0, 1.0)
        passed += non_inferiority(list(base), list(new), range(n), margin=0.05).state == "passed"

    assert 0.72 < passed / trials < 0.88


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1])
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        non_inferiority([1.0], [1.0], ["a"], margin)
