from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.grpo import (
    LossInputs,
    LossOptions,
    group_advantages,
    k3,
    mask_overlong,
    overlong_penalty,
    policy_loss,
)

rewards = st.lists(st.none() | st.floats(0, 1), min_size=2, max_size=12)


def inputs(seed: int = 0, rows: int = 4, tokens: int = 6, **changes: Any) -> LossInputs:
    rng = np.random.default_rng(seed)
    behav = -rng.random((rows, tokens)) * 3
    values: dict[str, Any] = {
        "logp": behav + rng.normal(0, 0.3, (rows, tokens)),
        "logp_prox": behav + rng.normal(0, 0.3, (rows, tokens)),
        "logp_behav": behav,
        "logp_ref": behav + rng.normal(0, 0.3, (rows, tokens)),
        "mask": (rng.random((rows, tokens)) < 0.8).astype(float),
        "advantages": list(rng.normal(0, 1, rows)),
        "families": ["a", "a", "b", "b"][:rows],
    }
    return LossInputs(**(values | changes))


@given(rewards)
def test_advantages_of_a_group_sum_to_zero_and_unknown_rewards_stay_out(values: list[float | None]) -> None:
    found = group_advantages(values, ["g"] * len(values))

    known = [value for value in found.advantages if value is not None]
    assert sum(known) == pytest.approx(0.0, abs=1e-9)
    assert all(a is None for a, r in zip(found.advantages, values, strict=True) if r is None)
    assert bool(known) != bool(found.zero_variance or found.too_small)


def test_an_unknown_reward_is_no_part_of_the_baseline() -> None:
    assert group_advantages([1.0, 0.0, None], "ggg").advantages == (0.5, -0.5, None)


def test_groups_without_spread_or_with_one_scored_row_are_named() -> None:
    found = group_advantages([1.0, 1.0, 0.5, None, 1.0, 0.0], ["flat", "flat", "one", "one", "ok", "ok"])

    assert found.zero_variance == ("flat",)
    assert found.too_small == ("one",)
    assert found.advantages == (None, None, None, None, 0.5, -0.5)


def test_dividing_by_the_deviation_is_an_option() -> None:
    found = group_advantages([1.0, 0.0], "gg", scale_by_std=True)

    assert found.advantages[0] == pytest.approx(0.5 / np.std([1, 0], ddof=1))


def test_a_reward_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        group_advantages([float("nan"), 0.0], "gg")


@pytest.mark.parametrize("options", [LossOptions(), LossOptions(kl_coef=0.2, family_weights={"a": 3.0})])
def test_the_gradient_agrees_with_finite_differences(options: LossOptions) -> None:
    given_inputs = inputs(3)
    found = policy_loss(given_inputs, options)

    for row, token in [(0, 0), (1, 3), (2, 5), (3, 2)]:
        step = np.zeros_like(given_inputs.logp)
        step[row, token] = 1e-6
        up = policy_loss(inputs(3, logp=given_inputs.logp + step), options).loss
        down = policy_loss(inputs(3, logp=given_inputs.logp - step), options).loss
        assert up is not None
        assert down is not None
        assert found.gradient[row, token] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_on_policy_the_loss_is_minus_the_mean_advantage() -> None:
    same = inputs().logp_behav
    found = policy_loss(
        inputs(
            logp=same,
            logp_prox=same,
            mask=np.ones((4, 6)),
            advantages=[1.0, 0.0, 2.0, 0.0],
            families=["a"] * 4,
        )
    )

    assert found.loss == pytest.approx(-0.75)
    assert found.metrics["ratio_mean"] == pytest.approx(1.0)
    assert found.metrics["clip_fraction"] == 0.0


def test_a_long_family_does_not_dominate() -> None:
    same = np.zeros((2, 100))
    mask = np.ones((2, 100))
    mask[1, 1:] = 0

    found = policy_loss(LossInputs(same, same, same, mask, [1.0, -1.0], ["long", "short"]))
    weighted = policy_loss(
        LossInputs(same, same, same, mask, [1.0, -1.0], ["long", "short"]),
        LossOptions(family_weights={"long": 1.0, "short": 3.0}),
    )

    assert found.loss == pytest.approx(0.0)
    assert weighted.loss == pytest.approx(0.5)


def test_the_clip_is_asymmetric() -> None:
    zero = np.zeros((1, 1))
    one = np.ones((1, 1))

    def loss(ratio: float, advantage: float) -> float | None:
        return policy_loss(LossInputs(np.log(one * ratio), zero, zero, one, [advantage], ["a"])).loss

    assert loss(1.5, 1.0) == pytest.approx(-1.28)
    assert loss(0.5, -1.0) == pytest.approx(0.8)
    assert loss(0.5, 1.0) == pytest.approx(-0.5)
    assert loss(1.5, -1.0) == pytest.approx(1.5)


def test_the_importance_weight_is_truncated() -> None:
    zero, one = np.zeros((1, 1)), np.ones((1, 1))

    found = policy_loss(LossInputs(zero, zero, zero - 5, one, [1.0], ["a"]))

    assert found.loss == pytest.approx(-2.0)
    assert found.metrics["importance_truncated"] == 1.0


def test_left_out_rows_and_padding_leave_numerator_and_denominator() -> None:
    whole = inputs(5)
    padded = np.array(whole.logp)
    padded[whole.mask == 0] = np.nan

    found = policy_loss(inputs(5, logp=padded, advantages=[*whole.advantages[:3], None]))
    fewer = policy_loss(
        LossInputs(
            *(array[:3] for array in (whole.logp, whole.logp_prox, whole.logp_behav, whole.mask)),
            whole.advantages[:3],
            whole.families[:3],
        )
    )

    assert found.loss == pytest.approx(fewer.loss)
    assert not found.gradient[3].any()
    assert np.isfinite(found.gradient).all()


def test_nothing_to_train_on_skips_the_step() -> None:
    found = policy_loss(inputs(advantages=[None] * 4))

    assert found.loss is None
    assert not found.gradient.any()


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        policy_loss(inputs(mask=np.ones((4, 5))))
    with pytest.raises(ValueError, match="per row"):
        policy_loss(inputs(families=["a"]))


@given(st.integers(0, 1000))
def test_k3_is_never_negative_and_zero_only_for_equal_policies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = -rng.random((2, 5)) * 4, -rng.random((2, 5)) * 4

    assert (k3(left, right, np.ones((2, 5))) >= 0).all()
    assert not k3(left, left, np.ones((2, 5))).any()


def test_truncated_rows_are_left_out() -> None:
    assert mask_overlong([0.5, -0.5, None], ["stop", "length", "stop"]) == [0.5, None, None]


@pytest.mark.parametrize(("length", "penalty"), [(10, 0.0), (80, 0.0), (90, -0.5), (100, -1.0), (120, -1.0)])
def test_the_soft_penalty_is_linear_over_the_buffer(length: int, penalty: float) -> None:
    assert overlong_penalty(length, limit=100, buffer=20) == pytest.approx(penalty)
