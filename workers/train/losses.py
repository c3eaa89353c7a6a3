"""The policy-gradient losses, on trained tokens only: no padding, no prompt, no [B, T, V].

All inputs are flat over the N trained tokens of one pack. A token's ``weight`` already holds
the aggregation over the whole optimizer batch, so the losses of its packs simply add up.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

_Objective = Callable[["LossInputs", "LossParams"], Tensor]


@dataclass(frozen=True)
class LossParams:
    clip_low: float = 0.8
    clip_high: float = 1.28
    importance_cap: float = 2.0
    kl_beta: float = 0.0


@dataclass(frozen=True)
class LossInputs:
    """``logp`` carries the gradient; everything else is data.

    ``logp_prox`` is the policy at the start of the optimizer pass, ``logp_behav`` the one that
    sampled, ``logp_ref`` the reference (None: no KL is taken).
    """

    logp: Tensor  # [N]
    logp_prox: Tensor  # [N]
    logp_behav: Tensor  # [N]
    advantage: Tensor  # [N]
    weight: Tensor  # [N], sums to 1 over the optimizer batch
    logp_ref: Tensor | None = None  # [N]


@dataclass(frozen=True)
class LossOutputs:
    """``metrics`` are sums over the N tokens (``…_max``: maxima); divide by the number of tokens."""

    loss: Tensor  # []
    metrics: dict[str, Tensor]


def grpo_loss(inputs: LossInputs, params: LossParams) -> LossOutputs:
    """Clipped surrogate with a truncated importance weight and k3 KL.

    Sources: PPO clip as in DAPO (arXiv 2503.14476, eq. 8, asymmetric clip, token aggregation);
    decoupled ratio pi/pi_prox times min(pi_prox/pi_behav, cap) (arXiv 2505.24298, eq. 5);
    k3 of Schulman's "Approximating KL divergence". Deviation: tokens are averaged per family.
    """
    return _assemble(inputs, params, _clipped)


def cispo_loss(inputs: LossInputs, params: LossParams) -> LossOutputs:
    """Clipped importance weight, gradient through log pi of every token (arXiv 2506.13585, eq. 4).

    Deviation: the weight is decoupled as in ``grpo_loss``.
    """
    return _assemble(inputs, params, _clipped_weight)


def _clipped(inputs: LossInputs, params: LossParams) -> Tensor:
    ratio = (inputs.logp - inputs.logp_prox).exp()
    bounded = ratio.clamp(params.clip_low, params.clip_high)
    return (ratio * inputs.advantage).minimum(bounded * inputs.advantage)


def _clipped_weight(inputs: LossInputs, params: LossParams) -> Tensor:
    ratio = (inputs.logp.detach() - inputs.logp_prox).exp()
    return ratio.clamp(max=params.clip_high) * inputs.advantage * inputs.logp


def _assemble(inputs: LossInputs, params: LossParams, objective: _Objective) -> LossOutputs:
    raw_importance = (inputs.logp_prox - inputs.logp_behav).exp()
    importance = raw_importance.clamp(max=params.importance_cap)
    per_token = -importance * objective(inputs, params)
    metrics = {
        "importance": importance.sum(),
        "importance_max": raw_importance.max(),
        "importance_capped": (raw_importance > params.importance_cap).sum(),
        # k3(behaviour || proximal): what engine and trainer disagree on, plus staleness.
        "engine_kl": _k3(inputs.logp_behav, inputs.logp_prox).sum(),
        **_ratio_metrics(inputs, params),
    }
    if inputs.logp_ref is not None:
        kl = _k3(inputs.logp, inputs.logp_ref)
        per_token = per_token + params.kl_beta * kl
        metrics["kl"] = kl.detach().sum()
    return LossOutputs(loss=(inputs.weight * per_token).sum(), metrics=metrics)


def _k3(logp: Tensor, logp_other: Tensor) -> Tensor:
    """Per-token estimate of KL(p || other) on samples of p, never negative. [N] -> [N]"""
    difference = logp_other - logp
    return difference.exp() - difference - 1.0


def _ratio_metrics(inputs: LossInputs, params: LossParams) -> dict[str, Tensor]:
    ratio = (inputs.logp.detach() - inputs.logp_prox).exp()
    # Clipped means: the bound took the gradient away, which depends on the advantage's sign.
    high = (ratio > params.clip_high) & (inputs.advantage > 0)
    low = (ratio < params.clip_low) & (inputs.advantage < 0)
    return {"ratio": ratio.sum(), "clipped": (high | low).sum()}
