import math
from decimal import Decimal

import pytest

from domain.figures import figures_of, mean_of_groups, pass_at_rows
from domain.intervals import moments_of, rate_se
from domain.stats import pass_at_k, pass_hat_k
from domain.tally import Sample, Tally


def tally_of_cases(*cases: tuple[int, int], clusters: int | None = None) -> Tally:
    tally = Tally()
    for scored, passed in cases:
        tally.add_case(scored, passed)
        tally.add_cluster(scored, passed)
        for number in range(scored):
            tally.add(
                Sample("passed" if number < passed else "failed", float(number < passed), answered=True)
            )
    if clusters is not None:
        tally.counts["clusters"] = clusters
    return tally


def test_pass_at_k_is_the_unbiased_mean_over_cases() -> None:
    tally = tally_of_cases((4, 1), (4, 4), (4, 0))

    rows = {row.k: row for row in pass_at_rows(tally, 4)}

    assert list(rows) == [1, 2, 4]
    for k, row in rows.items():
        assert row.any_rate == pytest.approx(sum(pass_at_k(4, c, k) or 0 for c in (1, 4, 0)) / 3)
        assert row.all_rate == pytest.approx(sum(pass_hat_k(4, c, k) or 0 for c in (1, 4, 0)) / 3)
        assert row.cases == 3


def test_cases_with_too_few_scored_samples_are_left_out_of_k() -> None:
    rows = {row.k: row for row in pass_at_rows(tally_of_cases((4, 2), (1, 1)), 4)}

    assert (rows[1].cases, rows[2].cases, rows[4].cases) == (2, 1, 1)


def test_cases_that_share_sources_get_no_interval_over_cases() -> None:
    alone = pass_at_rows(tally_of_cases((2, 1), (2, 2), (2, 0)), 2)
    shared = pass_at_rows(tally_of_cases((2, 1), (2, 2), (2, 0), clusters=2), 2)

    assert alone[0].any_interval is not None
    assert shared[0].any_interval is None


def test_one_sample_per_case_has_no_pass_at_k() -> None:
    assert pass_at_rows(tally_of_cases((1, 1)), 1) == []


def test_an_unknown_price_makes_an_unknown_cost() -> None:
    tally = tally_of_cases((1, 1))

    assert figures_of(tally).cost_usd is None
    priced = figures_of(tally, input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(1))
    assert priced.cost_usd == 0


def test_nothing_measured_is_no_latency_and_no_share() -> None:
    figures = figures_of(Tally())

    assert (figures.latency, figures.cached_share, figures.judged_share, figures.score_mean) == (None,) * 4


def test_the_mean_of_families_is_unweighted_with_the_root_of_summed_squares_over_k() -> None:
    small, large = moments_of([(1, 1)] * 6 + [(1, 0)] * 4), moments_of([(1, 1)] * 300 + [(1, 0)] * 700)

    found = mean_of_groups([small, large])

    errors = [rate_se(small), rate_se(large)]
    assert found is not None
    assert found.mean == pytest.approx((0.6 + 0.3) / 2)
    assert found.se == pytest.approx(math.sqrt(sum(error**2 for error in errors if error)) / 2)


def test_a_family_at_a_hundred_per_cent_is_not_certain() -> None:
    sure, other = moments_of([(1, 1)] * 5), moments_of([(1, 1)] * 5 + [(1, 0)] * 5)

    found = mean_of_groups([sure, other])

    alone = rate_se(other)
    assert found is not None
    assert alone is not None
    assert found.se > alone / 2


def test_a_family_that_is_too_small_is_named_as_left_out() -> None:
    found = mean_of_groups([moments_of([(1, 1)]), *[moments_of([(1, 1), (1, 0)])] * 2])

    assert found is not None
    assert (found.groups, found.left_out) == (2, 1)
    assert mean_of_groups([moments_of([(1, 1), (1, 0)])]) is None
