import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.curriculum import Curriculum


def after(*rates: float | None) -> Curriculum:
    curriculum = Curriculum()
    for rate in rates:
        curriculum = curriculum.updated("t", rate)
    return curriculum


def test_the_rate_is_a_moving_average() -> None:
    assert after(1.0, 0.0).tasks["t"] == pytest.approx((0.7, 2))


def test_an_unknown_pass_rate_changes_nothing() -> None:
    assert after(None).tasks == {}
    assert after(0.5, None) == after(0.5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_every_weight_is_positive_and_half_is_the_highest(rates: list[float]) -> None:
    curriculum = after(*rates)

    assert 0.0 < curriculum.weight("t") <= curriculum.weight("unseen")


def test_solved_and_hopeless_tasks_are_set_aside_but_revisited() -> None:
    assert after(1.0).weight("t") == after(0.0).weight("t") == 0.02
    assert after(0.9).weight("t") == pytest.approx(0.14)


def test_tasks_in_the_middle_are_drawn_more_often() -> None:
    curriculum = after(1.0).updated("half", 0.5)
    rng = np.random.default_rng(1)

    drawn = [curriculum.draw(["t", "half"], 1, rng)[0] for _ in range(500)]

    assert 0.9 < drawn.count("half") / 500 < 0.97


def test_a_draw_repeats_nothing_before_all_were_drawn_and_is_reproducible() -> None:
    names = [f"task-{n}" for n in range(5)]

    drawn = after(1.0).draw(names, 12, np.random.default_rng(7))

    assert sorted(drawn[:5]) == names
    assert sorted(drawn[5:10]) == names
    assert drawn == after(1.0).draw(names, 12, np.random.default_rng(7))


def test_the_state_survives_a_checkpoint() -> None:
    curriculum = after(1.0, 0.25).updated("u", 0.5)

    assert Curriculum.from_dict(json.loads(json.dumps(curriculum.to_dict()))) == curriculum


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="pass rate"):
        after(1.5)
    with pytest.raises(ValueError, match="no task"):
        Curriculum().draw([], 1, np.random.default_rng(0))
