"""Scores and differences: their words, and where their marks stand."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.ui import plots
from domain.paired import paired_difference
from domain.summary import summarize, verdict_sentence

_SCORE = {"value": 0.71, "low": 0.64, "high": 0.77, "n": 212, "clusters": 40}
_DIFF = {"mean": 0.062, "low": 0.024, "high": 0.101, "n": 212, "clusters": 40, "verdict": "better"}


def test_a_score_reads_with_interval_n_and_sources() -> None:
    assert plots.score_text(_SCORE) == "71 % (64–77), n = 212, 40 sources"


def test_a_narrow_interval_earns_a_decimal() -> None:
    assert plots.score_text({"value": 0.712, "low": 0.709, "high": 0.715, "n": 90000}).startswith(
        "71.2 % (70.9–71.5)"
    )


@pytest.mark.parametrize("missing", [None, {}, {"value": None, "n": 5}, {"value": 0.0, "n": 0}])
def test_no_data_is_said_and_not_drawn(missing: object) -> None:
    assert plots.score_text(missing) == "no data"
    assert plots.score_plot(missing or {}).marks[0].x is None


def test_a_small_n_gives_no_number() -> None:
    assert plots.score_text({"value": 0.5, "low": 0.1, "high": 0.9, "n": 4}) == "n too small (n = 4)"


def test_an_interval_may_sit_in_its_own_object() -> None:
    nested = SimpleNamespace(rate=0.5, interval=SimpleNamespace(low=0.4, high=0.6, n=96))

    assert plots.score_text(nested) == "50 % (40–60), n = 96"


def test_a_run_summary_of_the_domain_is_understood() -> None:
    states = ["passed"] * 30 + ["failed"] * 10 + ["error"] * 2

    text = plots.score_text(summarize(states))

    assert text.startswith("75 % (")
    assert ", n = 40" in text


def test_a_paired_difference_of_the_domain_is_understood() -> None:
    found = paired_difference([0.0] * 40, [1.0] * 30 + [0.0] * 10, list(range(40)))

    assert plots.difference_tone(found) == "pass"
    assert plots.difference_text(found).startswith("+75")
    assert plots.verdict_sentence(found) == verdict_sentence(found)


def test_a_difference_reads_in_points() -> None:
    assert plots.difference_text(_DIFF) == "+6 points (2 to 10, paired, n = 212, 40 sources)"


def test_an_undecided_verdict_says_what_would_settle_it() -> None:
    undecided = {**_DIFF, "low": -0.01, "verdict": "undecided", "needed": 180, "margin": 0.03}

    sentence = plots.verdict_sentence(undecided)

    assert sentence == "Cannot tell yet; about 180 more cases would settle a 3-point difference."
    assert plots.difference_tone(undecided) == ""


def test_a_verdict_may_bring_its_own_sentence() -> None:
    assert plots.verdict_sentence({**_DIFF, "sentence": "Better than 3.4."}) == "Better than 3.4."


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_marks_stay_on_the_axis_and_in_order(a: float, b: float, c: float) -> None:
    low, value, high = sorted((a, b, c))

    plot = plots.scores_plot([("new", {"value": value, "low": low, "high": high, "n": 50})])

    mark = plot.marks[0]
    assert mark.low is not None
    assert mark.x is not None
    assert mark.high is not None
    assert plot.left <= mark.low <= mark.x <= mark.high <= plot.right


@given(st.floats(-1, 1), st.floats(0, 0.5))
def test_a_gain_is_right_of_the_zero_line(mean: float, half: float) -> None:
    plot = plots.difference_plot({"mean": mean, "low": mean - half, "high": mean + half})

    assert plot.zero is not None
    assert plot.marks[0].x is not None
    assert (plot.marks[0].x - plot.zero) * mean >= 0
    assert 0 <= plot.marks[0].x <= plot.width
