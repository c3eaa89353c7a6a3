"""The torch losses against the numpy reference in ``domain/grpo.py``."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from domain import grpo as reference
from domain.contracts.training import TrainConfig
from workers.train.batch import Row
from workers.train.grpo import _token_weights
from workers.train.losses import LossInputs, LossParams, cispo_loss, grpo_loss

PARAMS = LossParams(kl_beta=0.05)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_loss_and_gradient_are_those_of_the_reference(seed: int, with_reference: bool) -> None:
    case = _case(seed, with_reference)

    outputs = grpo_loss(_flat(case), PARAMS)
    outputs.loss.backward()

    expected = reference.policy_loss(
        case, reference.LossOptions(kl_coef=0.05, family_weights={"a": 2.0, "b": 1.0})
    )
    assert outputs.loss.item() == pytest.approx(expected.loss, abs=1e-5)
    gradient = _leaf.grad.numpy()
    np.testing.assert_allclose(gradient, expected.gradient[_kept(case)], atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_metrics_are_those_of_the_reference(seed: int) -> None:
    case = _case(seed, True)

    sums = grpo_loss(_flat(case), PARAMS).metrics

    expected = reference.policy_loss(case).metrics
    tokens = expected["tokens"]
    names = {
        "ratio": "ratio_mean",
        "clipped": "clip_fraction",
        "importance_capped": "importance_truncated",
        "engine_kl": "behaviour_k3",
        "kl": "kl",
    }
    for ours, theirs in names.items():
        assert sums[ours].item() / tokens == pytest.approx(expected[theirs], abs=1e-5)


def test_cispo_keeps_the_gradient_of_clipped_tokens() -> None:
    logp = torch.tensor([0.0], requires_grad=True)
    inputs = _one_token(logp, prox=-1.0, behav=-1.0, advantage=1.0)  # ratio e, far above the clip

    cispo_loss(inputs, LossParams()).loss.backward()

    assert logp.grad is not None
    assert logp.grad.item() == pytest.approx(-1.28)


def test_grpo_gives_clipped_tokens_no_gradient() -> None:
    logp = torch.tensor([0.0], requires_grad=True)

    grpo_loss(_one_token(logp, prox=-1.0, behav=-1.0, advantage=1.0), LossParams()).loss.backward()

    assert logp.grad is not None
    assert logp.grad.item() == 0.0


def test_a_token_that_the_sampler_thought_unlikely_weighs_at_most_the_cap() -> None:
    logp = torch.tensor([-1.0], requires_grad=True)

    outputs = grpo_loss(_one_token(logp, prox=-1.0, behav=-9.0, advantage=1.0), LossParams())

    assert outputs.loss.item() == pytest.approx(-2.0)
    assert outputs.metrics["importance_capped"].item() == 1


_leaf: Tensor


def _case(seed: int, with_reference: bool) -> reference.LossInputs:
    rng = np.random.default_rng(seed)
    rows, tokens = 5, 6
    logp = -rng.uniform(0.05, 4, (rows, tokens))
    prox = logp + rng.normal(0, 0.3, logp.shape)
    mask = (rng.random(logp.shape) < 0.7).astype(float)
    mask[:, 0] = 1.0
    return reference.LossInputs(
        logp=logp,
        logp_prox=prox,
        logp_behav=prox + rng.normal(0, 0.6, logp.shape),
        mask=mask,
        advantages=[None if rng.random() < 0.2 else float(rng.normal()) for _ in range(rows - 1)] + [1.0],
        families=[str(rng.choice(["a", "b"])) for _ in range(rows)],
        logp_ref=logp + rng.normal(0, 0.3, logp.shape) if with_reference else None,
    )


def _kept(case: reference.LossInputs) -> np.ndarray:
    rows = np.array([value is not None for value in case.advantages])
    return (case.mask > 0) & rows[:, None]


def _flat(case: reference.LossInputs) -> LossInputs:
    """The case as the trainer sees it: kept tokens only, weights from the trainer's own rule."""
    global _leaf
    keep = _kept(case)
    kept_rows = [i for i, value in enumerate(case.advantages) if value is not None]
    rows = [_row(case.families[i], case.mask[i]) for i in kept_rows]
    config = TrainConfig(family_weights={"a": 2.0, "b": 1.0})
    weights = dict(zip(kept_rows, _token_weights(rows, config), strict=True))
    row_of = np.broadcast_to(np.arange(len(case.mask))[:, None], keep.shape)[keep]
    _leaf = torch.tensor(case.logp[keep], requires_grad=True)
    return LossInputs(
        logp=_leaf,
        logp_prox=torch.tensor(case.logp_prox[keep]),
        logp_behav=torch.tensor(case.logp_behav[keep]),
        advantage=torch.tensor([case.advantages[i] for i in row_of]),
        weight=torch.tensor([weights[i] for i in row_of]),
        logp_ref=None if case.logp_ref is None else torch.tensor(case.logp_ref[keep]),
    )


def _row(family: str, mask: np.ndarray) -> Row:
    empty = np.zeros(len(mask))
    return Row("t", family, "g", 0, 0, "failed", 0.0, "stop", np.array([1]), empty, empty, mask > 0)


def _one_token(logp: Tensor, *, prox: float, behav: float, advantage: float) -> LossInputs:
    return LossInputs(
        logp=logp,
        logp_prox=torch.tensor([prox]),
        logp_behav=torch.tensor([behav]),
        advantage=torch.tensor([advantage]),
        weight=torch.tensor([1.0]),
    )
