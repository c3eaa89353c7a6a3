"""Border inputs: first tokens that are nearly a coin flip."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift import border_reference, border_signal, mixed_prompts, steadiest
from domain.drift.border import balance, excess, permutation_test

REFERENCE = {"counts": [{"a": 20, "b": 20}] * 5, "each": 10}
counts = st.dictionaries(st.sampled_from("abc"), st.integers(1, 15), min_size=1, max_size=3)


def judged(now: list[dict[str, int]], trail: tuple[float, ...] = ()) -> str:
    return border_signal(REFERENCE, now, trail, np.random.default_rng(1)).state


def test_the_same_split_is_unchanged() -> None:
    assert judged([{"a": 5, "b": 5}] * 5) == "unchanged"


def test_a_split_that_is_gone_flags() -> None:
    assert judged([{"a": 10}] * 5) == "flagged"


def test_a_new_first_token_flags() -> None:
    assert judged([{"c": 10}] * 5) == "flagged"


def test_an_uneven_draw_is_noise() -> None:
    assert (
        judged([{"a": 7, "b": 3}, {"a": 4, "b": 6}, {"a": 5, "b": 5}, {"a": 6, "b": 4}, {"b": 8, "a": 2}])
        == "unchanged"
    )


def test_too_few_answers_are_unmeasured() -> None:
    assert judged([{"a": 10}] * 3 + [{}] * 2) == "unmeasured"


def test_what_unchanged_rounds_show_does_not_flag_later() -> None:
    loud = (60.0, 40.0, 55.0, 70.0, 50.0, 45.0, 65.0, 58.0)

    assert judged([{"a": 10}] * 5, loud) == "unchanged"
    assert judged([{"a": 10}] * 5, loud[:7]) == "flagged"


def test_what_the_passes_of_the_reference_show_does_not_flag_from_the_first_round_on() -> None:
    swaying = [[{"a": 10}] * 5, [{"b": 10}] * 5] * 4
    known = {**border_reference(["p"] * 5, swaying), "each": 10}

    assert known["counts"] == [{"a": 40, "b": 40}] * 5
    assert border_signal(known, [{"a": 10}] * 5, (), np.random.default_rng(1)).state == "unchanged"


def test_passes_that_agree_leave_the_statistic_as_it_is() -> None:
    known = border_reference(["p"], [[{"a": 5, "b": 5}]] * 8)

    assert known["null"] == [pytest.approx(0.0)] * 8
    assert excess(known["null"], np.array([1.0])) == 1.0


def test_prompts_that_answer_otherwise_beside_others_are_left_out() -> None:
    flip, calm = {"a": 5, "b": 5}, {"a": 8, "b": 2}
    alone, together = [[flip, {"a": 10}, calm]] * 2, [[flip, {"b": 10}, calm]] * 6

    assert steadiest(alone, together, 2) == [0, 2]


def test_balanced_prompts_come_first_and_certain_ones_not_at_all() -> None:
    found = mixed_prompts({"sure": {"a": 3}, "flip": {"a": 2, "b": 2}, "mostly": {"a": 5, "b": 1}}, 5)

    assert found == ["flip", "mostly"]
    assert balance({}) == 0.0


def test_the_permutation_test_flags_unchanged_splits_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    level, times = 0.05, 400
    low = sum(permutation_test(_pairs(rng), rng)[1] <= level for _ in range(times))

    assert low / times == pytest.approx(level, abs=0.035)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=4))
def test_a_p_value_is_a_chance_and_does_not_depend_on_names(
    pairs: list[tuple[dict[str, int], dict[str, int]]],
) -> None:
    renamed = [
        ({f"x{k}": v for k, v in one.items()}, {f"x{k}": v for k, v in two.items()}) for one, two in pairs
    ]

    g, p = permutation_test(pairs, np.random.default_rng(1))

    assert 0 < p <= 1
    assert g >= 0
    assert permutation_test(renamed, np.random.default_rng(1)) == (pytest.approx(g), p)


def _pairs(rng: np.random.Generator) -> list[tuple[dict[str, int], dict[str, int]]]:
    def flips(n: int) -> dict[str, int]:
        heads = int(rng.binomial(n, 0.4))
        return {"a": heads, "b": n - heads}

    return [(flips(40), flips(10)) for _ in range(5)]
