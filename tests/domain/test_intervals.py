import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.intervals import clustered_mean, clustered_rate, wilson

counts = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_wilson_stays_inside_zero_and_one_and_holds_the_rate(count: tuple[int, int]) -> None:
    passed, n = count

    interval = wilson(passed, n)

    assert interval is not None
    assert 0.0 <= interval.low <= passed / n <= interval.high <= 1.0
    assert interval.low < interval.high


def test_wilson_agrees_with_a_published_example() -> None:
    interval = wilson(81, 263)  # Newcombe 1998, table I

    assert interval is not None
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)


def test_no_rows_have_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clustered_mean([], []).mean is None
    assert clustered_rate([], []) is None


@pytest.mark.parametrize(("passed", "n"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(passed: int, n: int) -> None:
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson(passed, n)


def test_one_cluster_is_too_small_for_an_interval() -> None:
    estimate = clustered_mean([0.0, 1.0, 1.0], ["a", "a", "a"])

    assert estimate.mean == pytest.approx(2 / 3)
    assert estimate.interval is None
    assert clustered_rate([True, False], ["a", "a"]) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_clusters_of_one_give_the_plain_standard_error(values: list[float]) -> None:
    estimate = clustered_mean(values, range(len(values)))

    assert estimate.se == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), abs=1e-9)


def test_the_standard_error_is_the_sum_over_pairs_inside_clusters() -> None:
    values, clusters = [1.0, 0.0, 1.0, 1.0, 0.0], ["a", "a", "b", "b", "c"]
    mean = 0.6
    pairs = sum(
        (x - mean) * (y - mean)
        for x, cx in zip(values, clusters, strict=True)
        for y, cy in zip(values, clusters, strict=True)
        if cx == cy
    )

    estimate = clustered_mean(values, clusters)

    assert estimate.se == pytest.approx(math.sqrt(pairs / 25 * 3 / 2))


def test_copies_of_the_same_rows_do_not_narrow_the_interval() -> None:
    once = clustered_mean([0.0, 1.0, 1.0, 0.0], range(4))
    thrice = clustered_mean([0.0, 1.0, 1.0, 0.0] * 3, list(range(4)) * 3)

    assert thrice.se == pytest.approx(once.se)


def test_at_zero_and_hundred_percent_each_cluster_counts_once() -> None:
    interval = clustered_rate([True] * 100, [index % 5 for index in range(100)])

    assert interval is not None
    assert interval.high == 1.0
    assert interval.low < 0.45
    assert (interval.n, interval.clusters) == (100, 5)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=60))
def test_a_clustered_rate_stays_inside_zero_and_one(rows: list[tuple[bool, int]]) -> None:
    interval = clustered_rate([row[0] for row in rows], [row[1] for row in rows])

    if interval is not None:
        rate = sum(row[0] for row in rows) / len(rows)
        assert 0.0 <= interval.low <= rate + 1e-12
        assert rate - 1e-12 <= interval.high <= 1.0


def test_not_finite_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([0.0, math.nan], ["a", "b"])


def test_clustered_intervals_cover_the_truth_in_simulation() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        rates = rng.beta(2, 2, size=25)
        passes = (rng.random((25, 8)) < rates[:, None]).ravel()
        interval = clustered_rate(list(passes), list(np.repeat(np.arange(25), 8)))
        assert interval is not None
        hits += interval.low <= 0.5 <= interval.high

    assert 0.92 <= hits / 400 <= 0.985
