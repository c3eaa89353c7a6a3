import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from domain.paired import cluster_bootstrap, mcnemar_exact, more_cases, paired_difference

outcomes = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), min_size=2, max_size=60)


@given(outcomes)
def test_swapping_the_runs_mirrors_the_comparison(rows: list[tuple[bool, bool, int]]) -> None:
    base, new, clusters = ([float(row[i]) for row in rows] for i in range(3))

    forward = paired_difference(base, new, clusters)
    backward = paired_difference(new, base, clusters)

    assert forward.mean == pytest.approx(-(backward.mean or 0.0))
    assert (forward.flips_up, forward.flips_down) == (backward.flips_down, backward.flips_up)
    assert {forward.verdict, backward.verdict} in ({"cannot_tell"}, {"better", "worse"})


def test_a_clear_gain_is_better_and_a_clear_loss_is_worse() -> None:
    base, new = [0.0] * 30 + [1.0] * 10, [1.0] * 20 + [0.0] * 10 + [1.0] * 10

    gain = paired_difference(base, new, range(40))
    loss = paired_difference(new, base, range(40))

    assert gain.verdict == "better"
    assert gain.mean == 0.5
    assert (gain.flips_up, gain.flips_down) == (20, 0)
    assert loss.verdict == "worse"


def test_the_same_flips_from_one_source_prove_nothing() -> None:
    base, new = [0.0] * 20 + [0.0, 1.0] * 10, [1.0] * 20 + [1.0, 0.0] * 10

    spread = paired_difference(base, new, range(40))
    joined = paired_difference(base, new, ["one"] * 20 + list(range(20)))  # type: ignore[arg-type]

    assert spread.verdict == "better"
    assert joined.verdict == "cannot_tell"


def test_identical_runs_leave_a_width_and_no_verdict() -> None:
    difference = paired_difference([1.0, 0.0] * 20, [1.0, 0.0] * 20, range(40))

    assert difference.verdict == "cannot_tell"
    assert difference.low is not None
    assert difference.low < -0.05
    assert difference.se is None


def test_two_flips_with_no_spread_are_no_proof() -> None:
    assert paired_difference([0.0, 0.0], [1.0, 1.0], ["a", "b"]).verdict == "cannot_tell"


def test_equal_graded_differences_without_spread_have_no_interval() -> None:
    difference = paired_difference([0.2, 0.4], [0.3, 0.5], ["a", "b"])

    assert difference.low is None
    assert difference.verdict == "cannot_tell"


def test_unscored_pairs_are_dropped_and_counted() -> None:
    difference = paired_difference([0.0, None, 1.0], [1.0, 1.0, None], ["a", "b", "c"])

    assert (difference.n, difference.dropped) == (1, 2)
    assert difference.low is None
    assert difference.method == "n too small"


def test_no_pairs_give_no_mean() -> None:
    difference = paired_difference([], [], [])

    assert difference.mean is None
    assert difference.p_mcnemar is None
    assert more_cases(difference, 0.03) is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_the_binomial_test(up: int, down: int) -> None:
    expected = scipy_stats.binomtest(up, up + down, 0.5).pvalue if up + down else 1.0

    assert mcnemar_exact(up, down) == pytest.approx(expected)


def test_mcnemar_is_absent_for_graded_scores() -> None:
    assert paired_difference([0.5, 0.0], [0.7, 0.1], ["a", "b"]).p_mcnemar is None


def test_more_cases_fall_as_cases_come_in() -> None:
    base, new = [0.0, 1.0, 1.0, 0.0] * 10, [1.0, 0.0, 1.0, 0.0] * 10
    few = paired_difference(base, new, range(40))
    many = paired_difference(base * 10, new * 10, range(400))

    assert (more_cases(few, 0.03) or 0) > (more_cases(many, 0.03) or 0) > 0


def test_the_bootstrap_agrees_with_the_clustered_interval_and_is_reproducible() -> None:
    rng = np.random.default_rng(1)
    effect = np.repeat(rng.normal(0.1, 0.2, size=60), 5)
    base = rng.random(300)
    new = base + effect + rng.normal(0, 0.1, size=300)
    clusters = list(np.repeat(np.arange(60), 5))

    checked = cluster_bootstrap(list(base), list(new), clusters, np.random.default_rng(2))
    again = cluster_bootstrap(list(base), list(new), clusters, np.random.default_rng(2))
    difference = paired_difference(list(base), list(new), clusters)

    assert checked is not None
    assert checked == again
    assert checked.low == pytest.approx(difference.low, abs=0.015)
    assert checked.high == pytest.approx(difference.high, abs=0.015)
    assert cluster_bootstrap([0.0], [1.0], ["a"], rng) is None


def test_equal_runs_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(400):
        base, new = (rng.random((2, 60)) < 0.6).astype(float)
        wrong += paired_difference(list(base), list(new), range(60)).verdict != "cannot_tell"

    assert wrong / 400 <= 0.08


def test_the_bootstrap_of_whole_runs_is_quick_and_agrees() -> None:
    rng = np.random.default_rng(4)
    base, new = ((rng.random(100_000) < rate).astype(float) for rate in (0.6, 0.62))

    checked = cluster_bootstrap(list(base), list(new), range(100_000), np.random.default_rng(5))
    difference = paired_difference(list(base), list(new), range(100_000))

    assert checked is not None
    assert checked.low == pytest.approx(difference.low, abs=3e-4)
    assert checked.high == pytest.approx(difference.high, abs=3e-4)


@given(outcomes)
def test_the_p_value_is_small_exactly_where_the_interval_misses_zero(rows: list[tuple[bool, bool, int]]):
    base, new = ([float(row[i]) for row in rows] for i in range(2))

    found = paired_difference(base, new, [index // 2 for index in range(len(rows))])

    if found.se is not None and found.p_value is not None and found.clusters != found.n:
        assert (found.p_value < 0.05) == (found.verdict != "cannot_tell")
    assert found.p_value is None or 0.0 <= found.p_value <= 1.0
