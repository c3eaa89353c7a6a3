import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contracts import Check, Verdict
from domain.rewards import FAILED_CAP, PASSED_FLOOR, RewardWeights, episode_reward

unit = st.floats(0, 1)
checks = st.lists(
    st.builds(
        Check, name=st.just("c"), role=st.sampled_from(["process", "format", "guard"]), score=unit | st.none()
    )
).map(tuple)


@given(unit, st.floats(0.001, 1), checks, checks, st.booleans())
def test_a_failure_earns_at_most_a_fifth_and_less_than_any_success(
    failed: float, passed: float, left: tuple[Check, ...], right: tuple[Check, ...], no_op: bool
) -> None:
    loser = episode_reward(Verdict(state="failed", score=failed, checks=left), no_op=no_op).value
    winner = episode_reward(Verdict(state="passed", score=passed, checks=right)).value

    assert loser is not None
    assert winner is not None
    assert 0.0 <= loser <= FAILED_CAP + 1e-12 < PASSED_FLOOR <= winner <= 1.0


@given(checks, unit)
def test_terms_add_up_to_the_value(found: tuple[Check, ...], score: float) -> None:
    reward = episode_reward(Verdict(state="failed", score=score, checks=found))

    assert sum(reward.terms.values()) == pytest.approx(reward.value)


def test_a_full_success_earns_one() -> None:
    form = Check(name="json", role="format", score=1.0)

    assert episode_reward(Verdict(state="passed", score=1.0)).value == 1.0
    assert episode_reward(Verdict(state="passed", score=1.0, checks=(form,))).value == pytest.approx(1.0)


@pytest.mark.parametrize("verdict", [None, Verdict(state="unscored")])
def test_what_nobody_could_judge_has_no_reward(verdict: Verdict | None) -> None:
    assert episode_reward(verdict).value is None


def test_the_right_form_without_right_content_earns_nothing() -> None:
    perfect = (Check(name="json", role="format", score=1.0), Check(name="steps", role="process", score=1.0))

    assert episode_reward(Verdict(state="failed", score=0.0, checks=perfect)).value == 0.0


def test_a_no_op_and_a_broken_guard_earn_nothing() -> None:
    guard = Check(name="no_extra_fields", role="guard", score=0.0)

    assert episode_reward(Verdict(state="failed", score=0.5), no_op=True).value == 0.0
    assert episode_reward(Verdict(state="failed", score=0.5, checks=(guard,))).value == 0.0


def test_partly_right_content_earns_partly() -> None:
    half = episode_reward(Verdict(state="failed", score=0.5)).value
    more = episode_reward(Verdict(state="failed", score=0.75)).value

    assert half == pytest.approx(0.1)
    assert more == pytest.approx(0.15)


def test_weights_that_ignore_the_outcome_are_refused() -> None:
    with pytest.raises(ValueError, match="terminal"):
        RewardWeights(terminal=0.0)
