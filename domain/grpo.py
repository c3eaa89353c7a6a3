"""Group-relative policy optimisation in numpy: the reference that the torch version is tested against.

N rows (trajectories), T tokens; ``mask`` is 1 on tokens that the policy sampled. Unknown rewards are
None and never 0.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
ZERO_VARIANCE = 1e-6


class GroupAdvantages(NamedTuple):
    """``advantages`` [N], None where a row must not be trained on. Group names in order of first
    appearance: ``zero_variance`` (all rewards equal) and ``too_small`` (fewer than two scored)."""

    advantages: tuple[float | None, ...]
    zero_variance: tuple[Hashable, ...]
    too_small: tuple[Hashable, ...]


@dataclass(frozen=True)
class LossInputs:
    """``logp``, ``logp_prox``, ``logp_behav``, ``logp_ref``: [N, T] natural-log probabilities of the
    sampled tokens under the policy in training, at the start of the optimizer batch, while
    sampling, and of the reference. ``advantages`` [N], None leaves the row out. ``families`` [N]."""

    logp: Float
    logp_prox: Float
    logp_behav: Float
    mask: Float
    advantages: Sequence[float | None]
    families: Sequence[str]
    logp_ref: Float | None = None


@dataclass(frozen=True)
class LossOptions:
    """``clip_low`` and ``clip_high`` bound the ratio itself; ``is_cap`` truncates the importance
    weight; ``family_weights`` default to equal weight for each family present."""

    clip_low: float = 0.8
    clip_high: float = 1.28
    is_cap: float = 2.0
    kl_coef: float = 0.0
    family_weights: Mapping[str, float] | None = None


class LossOutputs(NamedTuple):
    """``loss`` is None when no token is left to train on: the step is skipped, not 0/0. ``gradient``
    [N, T] is d loss / d logp. ``metrics`` hold finite numbers only."""

    loss: float | None
    gradient: Float
    metrics: dict[str, float]


def group_advantages(
    rewards: Sequence[float | None], groups: Sequence[Hashable], *, scale_by_std: bool = False
) -> GroupAdvantages:
    """A = r − mean(scored rewards of the group).

    Source: Dr. GRPO, arXiv 2503.20783, eq. 3 (no division by the standard deviation);
    ``scale_by_std`` gives GRPO, arXiv 2402.03300, section 4.1.2. None rewards are outside the
    baseline. Groups whose rewards differ by less than 1e-6, or with fewer than two scored rows,
    have no advantage at all and are named so that the caller can refill them.
    """
    if len(rewards) != len(groups):
        raise ValueError("rewards and groups must have equal length")
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)

    advantages: list[float | None] = [None] * len(rewards)
    flat: list[Hashable] = []
    small: list[Hashable] = []
    for group, rows in members.items():
        scored = {row: value for row in rows if (value := rewards[row]) is not None}
        if not all(math.isfinite(value) for value in scored.values()):
            raise ValueError(f"group {group!r} holds a reward that is not finite")
        if len(scored) < 2:
            small.append(group)
            continue
        if max(scored.values()) - min(scored.values()) < ZERO_VARIANCE:
            flat.append(group)
            continue
        values = np.array(list(scored.values()))
        scale = float(values.std(ddof=1)) if scale_by_std else 1.0
        for row, value in scored.items():
            advantages[row] = (value - float(values.mean())) / scale
    return GroupAdvantages(tuple(advantages), tuple(flat), tuple(small))


def policy_loss(inputs: LossInputs, options: LossOptions | None = None) -> LossOutputs:
    """Clipped, decoupled surrogate with token-level aggregation.

    Per token, with ratio ρ = π/π_prox and truncated weight w = min(π_prox/π_behav, cap):

        l = − w · min(ρ A, clip(ρ, low, high) A) + kl_coef · k3

    Sources: asymmetric clip and Σ tokens / Σ tokens: DAPO, arXiv 2503.14476, eq. 8 and 12; the
    decoupled objective: arXiv 2505.24298, eq. 5; k3 = π_ref/π − ln(π_ref/π) − 1: arXiv 2402.03300,
    eq. 4. Deviation: tokens are averaged inside each family over the whole batch, then families
    are weighted, so that families with long answers do not dominate. w carries no gradient.
    """
    options = options or LossOptions()
    keep, advantage = _kept(inputs)
    weights = _token_weights(keep, inputs.families, options.family_weights)
    tokens = float(keep.sum())
    if tokens == 0.0:
        return LossOutputs(None, np.zeros_like(keep), {"tokens": 0.0})

    ratio = np.exp(_masked(inputs.logp - inputs.logp_prox, keep))
    importance = np.exp(_masked(inputs.logp_prox - inputs.logp_behav, keep))
    truncated = np.minimum(importance, options.is_cap)
    clipped = np.clip(ratio, options.clip_low, options.clip_high)
    surrogate = np.minimum(ratio * advantage, clipped * advantage)
    active = ratio * advantage <= clipped * advantage  # the gradient flows through the smaller one
    token_loss = -truncated * surrogate
    gradient = -truncated * ratio * advantage * active

    metrics = {
        "tokens": tokens,
        "clip_fraction": float(((~active) * keep).sum() / tokens),
        "ratio_mean": float((ratio * keep).sum() / tokens),
        "importance_truncated": float(((importance > options.is_cap) * keep).sum() / tokens),
        "behaviour_k3": float((k3(inputs.logp_behav, inputs.logp_prox, keep)).sum() / tokens),
    }
    if inputs.logp_ref is not None:
        divergence = k3(inputs.logp, inputs.logp_ref, keep)
        metrics["kl"] = float(divergence.sum() / tokens)
        token_loss = token_loss + options.kl_coef * divergence
        away = 1.0 - np.exp(_masked(inputs.logp_ref - inputs.logp, keep))
        gradient = gradient + options.kl_coef * away
    return LossOutputs(float((token_loss * weights).sum()), gradient * weights, metrics)


def k3(logp: Float, logp_other: Float, mask: Float) -> Float:
    """Per-token estimate of KL(π ‖ other) from samples of π, ≥ 0, [N, T]; 0 where masked.

    Source: Schulman, "Approximating KL divergence" (2020), estimator k3.
    """
    log_ratio = _masked(logp_other - logp, mask)
    return (np.exp(log_ratio) - log_ratio - 1.0) * (mask > 0)


def mask_overlong(advantages: Sequence[float | None], finish_reasons: Sequence[str]) -> list[float | None]:
    """Rows cut at the length limit leave numerator and denominator (DAPO, section 3.4)."""
    if len(advantages) != len(finish_reasons):
        raise ValueError("advantages and finish_reasons must have equal length")
    return [
        None if reason == "length" else value
        for value, reason in zip(advantages, finish_reasons, strict=True)
    ]


def overlong_penalty(length: int, limit: int, buffer: int) -> float:
    """Soft punishment in [−1, 0], linear over the last ``buffer`` tokens (DAPO, eq. 13)."""
    if not 0 < buffer <= limit:
        raise ValueError("the buffer must be positive and at most the limit")
    return -min(1.0, max(0.0, (length - (limit - buffer)) / buffer))


def _kept(inputs: LossInputs) -> tuple[Float, Float]:
    """Mask with left-out rows at 0 [N, T], advantages with None at 0 [N, 1]."""
    shape = inputs.logp.shape
    arrays = [inputs.logp_prox, inputs.logp_behav, inputs.mask]
    arrays += [] if inputs.logp_ref is None else [inputs.logp_ref]
    if len(shape) != 2 or any(array.shape != shape for array in arrays):
        raise ValueError("log-probabilities and mask must all have the shape [N, T]")
    if not len(inputs.advantages) == len(inputs.families) == shape[0]:
        raise ValueError("advantages and families must have one entry per row")
    rows = np.array([value is not None for value in inputs.advantages], dtype=np.float64)
    values = np.array([value or 0.0 for value in inputs.advantages], dtype=np.float64)
    return (inputs.mask > 0).astype(np.float64) * rows[:, None], values[:, None]


def _token_weights(keep: Float, families: Sequence[str], chosen: Mapping[str, float] | None) -> Float:
    """Weight of each token [N, T]; the weights of all kept tokens add up to 1."""
    per_row = keep.sum(axis=1)
    totals: dict[str, float] = {}
    for family, count in zip(families, per_row, strict=True):
        totals[family] = totals.get(family, 0.0) + float(count)
    present = {family: (chosen or {}).get(family, 1.0) for family, count in totals.items() if count > 0}
    scale = sum(present.values())
    rows = [present[f] / (scale * totals[f]) if f in present and scale > 0 else 0.0 for f in families]
    return keep * np.array(rows, dtype=np.float64)[:, None]


def _masked(values: Float, mask: Float) -> Float:
    """``values`` with 0 where masked, so that padding can hold anything."""
    return np.where(mask > 0, values, 0.0)
