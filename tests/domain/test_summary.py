import pytest

from domain.intervals import Interval
from domain.paired import paired_difference
from domain.summary import coverage_text, mean_by_case, score_text, summarize, verdict_sentence


def test_errors_stay_beside_the_rate() -> None:
    summary = summarize(["passed"] * 80 + ["failed"] * 10 + ["error"] * 10)

    assert summary.pass_rate == pytest.approx(80 / 90)
    assert coverage_text(summary) == "80 of 90 scored answers passed, 10 errors, coverage 90 %"
    assert not summary.decidable


def test_a_judge_that_fails_on_half_leaves_the_run_undecided() -> None:
    summary = summarize(["passed"] * 5 + ["unscored"] * 5)

    assert summary.coverage == 0.5
    assert coverage_text(summary) == "5 of 5 scored answers passed, 5 unscored, coverage 50 %"
    assert not summary.decidable


def test_nothing_scored_is_no_rate() -> None:
    empty, broken = summarize([]), summarize(["error", "cancelled"])

    assert (empty.pass_rate, empty.coverage, empty.interval) == (None, None, None)
    assert (broken.pass_rate, broken.coverage, broken.interval) == (None, 0.0, None)
    assert score_text(broken.pass_rate, broken.interval) == "no data"
    assert coverage_text(empty) == "no results"


def test_what_passed_is_never_read_as_what_was_scored() -> None:
    assert coverage_text(summarize(["passed"] * 9 + ["failed"] * 3)) == (
        "9 of 12 scored answers passed, coverage 100 %"
    )
    assert coverage_text(summarize(["passed", "error"])) == (
        "1 of 1 scored answer passed, 1 error, coverage 50 %"
    )


def test_a_rate_of_zero_is_shown_as_zero() -> None:
    summary = summarize(["failed"] * 30)

    assert summary.pass_rate == 0.0
    assert score_text(summary.pass_rate, summary.interval).startswith("0 % (0–")


def test_repeated_samples_of_few_cases_are_clusters() -> None:
    states = ["passed"] * 20 + ["failed"] * 20
    plain = summarize(states)
    clustered = summarize(states, [index // 10 for index in range(40)])

    assert plain.interval is not None
    assert clustered.interval is not None
    assert clustered.interval.clusters == 4
    assert clustered.interval.high - clustered.interval.low > plain.interval.high - plain.interval.low


def test_one_row_is_too_small() -> None:
    summary = summarize(["passed"])

    assert score_text(summary.pass_rate, summary.interval, summary.scored) == "n too small (n = 1)"


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(ValueError, match="skipped"):
        summarize(["skipped"])


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.64, 0.77, 212, "Wilson", 40), "71 % (64–77), n = 212, 40 sources"),
        (Interval(0.64, 0.77, 212, "Wilson", 212), "71 % (64–77), n = 212"),
        (Interval(0.7072, 0.7151, 50_000, "Wilson"), "71.1 % (70.7–71.5), n = 50,000"),
    ],
)
def test_digits_are_no_finer_than_the_interval(interval: Interval, text: str) -> None:
    assert score_text(0.711, interval) == text


def test_two_samples_of_one_case_are_averaged_and_unscored_ones_left_out() -> None:
    means = mean_by_case([("a", 1.0), ("a", 0.0), ("b", None), ("c", 1.0), ("c", None)])

    assert means == {"a": 0.5, "b": None, "c": 1.0}


def test_the_verdict_is_a_sentence() -> None:
    better = paired_difference([0.0] * 30 + [1.0] * 10, [1.0] * 20 + [0.0] * 10 + [1.0] * 10, range(40))
    worse = paired_difference([1.0] * 20 + [0.0] * 10 + [1.0] * 10, [0.0] * 30 + [1.0] * 10, range(40))
    open_ = paired_difference([0.0, 1.0, 1.0, 0.0] * 10, [1.0, 0.0, 1.0, 0.0] * 10, range(40))
    tiny = paired_difference([0.0], [1.0], ["a"])

    assert verdict_sentence(better) == "Better by 50 points (+34 to +66)."
    assert verdict_sentence(worse) == "Worse by 50 points (−66 to −34)."
    assert verdict_sentence(open_).startswith("Cannot tell yet; about ")
    assert verdict_sentence(open_).endswith(" more cases would settle a 3-point difference.")
    assert verdict_sentence(tiny) == "Cannot tell: n too small (1 case, 1 source)."
    assert verdict_sentence(paired_difference([], [], [])) == "Cannot tell: no case was scored in both runs."


def test_with_enough_cases_the_sentence_names_the_range() -> None:
    base = [float(index % 2) for index in range(4000)]
    new = [1.0 - score if index < 20 else score for index, score in enumerate(base)]

    sentence = verdict_sentence(paired_difference(base, new, range(4000)))

    assert sentence.startswith("Cannot tell yet; the difference lies between −0.")
