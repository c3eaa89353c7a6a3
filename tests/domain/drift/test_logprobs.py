"""Tracking log-probabilities of first tokens."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.drift import informative_prompts, logprobs_reference, logprobs_signal, sample_of
from domain.drift.logprobs import FLOOR, information, moves, threshold
from domain.drift.logprobs import statistic as mixture_statistic

logprobs = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-25, -0.01), min_size=2, max_size=8)
samples = st.lists(logprobs, min_size=1, max_size=6)


def statistic(before: list[dict[str, float]], now: list[dict[str, float]]) -> float:
    """Where both parts of the reference are the same."""
    return mixture_statistic(before, before, now)


def drawn(rng: np.random.Generator, shift: float = 0.0, noise: float = 0.0) -> dict[str, float]:
    logits = np.array([0.3, 0.1, -0.5, -1.0, -2.0]) + shift * np.array([1, -1, 0.5, 0, 0])
    logits = logits + rng.normal(0, noise, 5)
    values = logits - np.logaddexp.reduce(logits)
    return {f"t{index}": float(value) for index, value in enumerate(values)}


def reference(rng: np.random.Generator, noise: float) -> dict[str, object]:
    prompts = [f"p{n}" for n in range(8)]
    alone, together = (
        [[[drawn(rng, noise=noise) for _ in range(3)] for _ in prompts] for _ in range(2)] for _ in range(2)
    )
    return logprobs_reference(prompts, alone, together) | {"each": 3}


def judged(rng: np.random.Generator, noise: float = 0.0, shift: float = 0.0) -> str:
    known = reference(rng, noise)
    now = [[drawn(rng, shift, noise) for _ in range(3)] for _ in range(8)]
    return logprobs_signal(known, now, []).state


def test_the_same_distribution_is_unchanged() -> None:
    assert judged(np.random.default_rng(1)) == "unchanged"


@pytest.mark.parametrize("noise", [0.0, 1e-5, 0.02])
def test_a_shift_beyond_the_noise_flags(noise: float) -> None:
    rng = np.random.default_rng(1)

    assert {judged(rng, noise, shift=0.3) for _ in range(20)} == {"flagged"}


@pytest.mark.parametrize("noise", [0.0, 1e-5, 0.005, 0.05, 0.3])
def test_noise_alone_does_not_flag(noise: float) -> None:
    rng = np.random.default_rng(1)

    assert {judged(rng, noise) for _ in range(60)} == {"unchanged"}


def test_a_reference_of_an_idle_endpoint_does_not_flag_the_jitter_of_load() -> None:
    rng = np.random.default_rng(1)
    known = reference(rng, 0.0)

    now = [[drawn(rng, noise=1e-3) for _ in range(3)] for _ in range(8)]

    assert logprobs_signal(known, now, []).state == "unchanged"


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_however_many_requests_meet_others_is_no_change(share: float) -> None:
    rng = np.random.default_rng(1)
    alone = [[[drawn(rng)] * 3] * 8] * 2
    together = [[[drawn(rng, shift=0.2)] * 3] * 8] * 2
    known = logprobs_reference([f"p{n}" for n in range(8)], alone, together) | {"each": 3}
    batched = np.random.default_rng(2).random((8, 3)) < share

    now = [[drawn(rng, shift=0.2 * float(one)) for one in row] for row in batched]
    other = [[drawn(rng, shift=-0.2)] * 3] * 8

    assert logprobs_signal(known, now, []).state == "unchanged"
    assert logprobs_signal(known, other, []).state == "flagged"


def test_a_louder_trail_raises_the_threshold() -> None:
    assert threshold([0.02, 0.03] * 10) > threshold([0.001] * 20) == FLOOR


def test_too_few_answers_are_unmeasured() -> None:
    known = reference(np.random.default_rng(1), 0.0)
    half = [[drawn(np.random.default_rng(2))] * 3] * 4 + [[]] * 4

    found = logprobs_signal(known, half, [])

    assert found.state == "unmeasured"
    assert found.reasons == ["Only 12 of 24 requests brought log-probabilities."]


def test_a_token_outside_of_a_list_counts_as_its_lowest() -> None:
    assert statistic([{"a": -0.5, "b": -3.0}], [{"a": -0.5, "c": -3.0}]) == 0.0
    assert statistic([{"a": -0.5, "b": -3.0}], [{"a": -0.5, "c": -2.0}]) == pytest.approx(2 / 3)


def test_a_shorter_list_is_not_another_model() -> None:
    full = {"a": -0.5, "b": -1.5, "c": -3.0, "d": -4.0}

    assert statistic([full], [{"a": -0.5, "b": -1.5}]) == 0.0


def test_impossible_tokens_do_not_outweigh_all_others() -> None:
    assert sample_of([("a", -0.1), ("b", -9999.0)]) == {"a": -0.1, "b": -30.0}
    assert sample_of([("a", -0.1), ("b", -math.inf)]) == {"a": -0.1, "b": -30.0}


@pytest.mark.parametrize("entries", [[], [("a", math.nan)], [("a", 0.5)], [("a", math.inf)]])
def test_what_is_no_log_probability_is_no_sample(entries: list[tuple[str, float]]) -> None:
    assert sample_of(entries) is None


def test_tokens_that_read_the_same_are_added_up() -> None:
    found = sample_of([("�", math.log(0.2)), ("�", math.log(0.3))])

    assert found == {"�": pytest.approx(math.log(0.5))}


def test_prompts_with_an_open_answer_carry_more_than_certain_ones() -> None:
    sure, open_ = {"a": math.log(0.999)}, {"a": math.log(0.5), "b": math.log(0.5)}

    assert informative_prompts({"x": [sure], "y": [open_], "z": [sure]}, 1) == ["y"]
    assert information([open_]) == pytest.approx(0.5)


def test_the_tokens_that_moved_most_are_named() -> None:
    assert moves([{"a": -1.0, "b": -2.0}], [{"a": -1.1, "b": -4.0}], 1) == [
        {"token": "b", "before": -2.0, "now": -4.0}
    ]


def test_a_token_that_stayed_is_not_named_among_those_that_moved() -> None:
    assert moves([{"a": -1.14, "b": -2.0}], [{"a": -1.14, "b": -4.0}]) == [
        {"token": "b", "before": -2.0, "now": -4.0}
    ]


@given(samples, samples)
def test_the_statistic_is_symmetric_and_never_negative(one: list[dict], two: list[dict]) -> None:
    assert statistic(one, two) == pytest.approx(statistic(two, one))
    assert statistic(one, two) >= 0
    assert statistic(one, one) == 0


@given(samples, st.floats(-2, 2))
def test_a_common_shift_of_all_tokens_is_its_own_size(rows: list[dict], shift: float) -> None:
    moved = [{token: value + shift for token, value in row.items()} for row in rows]

    assert statistic(rows, moved) == pytest.approx(abs(shift), abs=1e-9)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=150), st.floats(0.1, 10))
def test_the_threshold_is_never_below_the_floor_and_grows_with_the_noise(
    null: list[float], factor: float
) -> None:
    low, high = sorted((threshold(null), threshold([value * factor for value in null])))

    assert low >= FLOOR
    assert high >= low
    assert threshold(null) >= min(np.mean(null[-100:]), 5) - 1e-9
