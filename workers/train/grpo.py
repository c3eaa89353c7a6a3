"""Group-relative policy optimization on finished rollouts: which rows count, and the steps on them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from domain.contracts.training import TrainConfig
from domain.grpo import group_advantages, mask_overlong, overlong_penalty
from workers.train.batch import Pack, Row, make_packs
from workers.train.losses import LossInputs, LossOutputs, LossParams, cispo_loss, grpo_loss
from workers.train.policy import Policy, TokenScores

_LAST_RATE = 0.05
_LOSSES = {"grpo": grpo_loss, "cispo": cispo_loss}


class Diverged(RuntimeError):
    """A loss or gradient that is not finite. ``rows`` is the batch that made it; the weights are
    those before it."""

    def __init__(self, what: str, rows: Sequence[Row]) -> None:
        super().__init__(what)
        self.rows = rows


@dataclass
class Selection:
    """Rows to train on, by group, with one advantage each; and what was left out and why."""

    groups: list[list[Row]] = field(default_factory=list)
    advantages: list[list[float]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, number: int) -> None:
        if number:
            self.left_out[what] = number

    def add(self, rows: Sequence[Row], advantages: Sequence[float | None]) -> None:
        """Take the rows that have an advantage, by group, in the order they came."""
        by_group: dict[str, list[tuple[Row, float]]] = {}
        for row, advantage in zip(rows, advantages, strict=True):
            if advantage is not None:
                by_group.setdefault(row.group, []).append((row, advantage))
        for members in by_group.values():
            self.groups.append([row for row, _ in members])
            self.advantages.append([advantage for _, advantage in members])

    @property
    def reason(self) -> str:
        """Why nothing is left, as a sentence."""
        parts = [f"{number} {what.replace('_', ' ')}" for what, number in sorted(self.left_out.items())]
        return f"nothing to train on: {', '.join(parts) or 'no rollouts'}"


def select_rows(rows: Sequence[Row], config: TrainConfig, *, policy_version: int) -> Selection:
    """Groups with a signal, each row with A = r - mean(scored rows of its group).

    Left out: rows without a reward and flagged ones (they are in no mean either), stale rows,
    groups with fewer than two scored rows or equal rewards, and, if so configured, rows that
    were cut off (their reward stays in the mean: it is a fact about the policy).
    """
    chosen = Selection()
    fresh = [row for row in rows if policy_version - row.policy_version <= config.staleness]
    chosen.count("rows_stale", len(rows) - len(fresh))
    chosen.count("flagged", sum(row.flagged for row in fresh))
    chosen.count("rows_without_reward", sum(row.reward is None and not row.flagged for row in fresh))
    found = group_advantages(
        [_shaped_reward(row, config) for row in fresh],
        [row.group for row in fresh],
        scale_by_std=config.scale_advantage,
    )
    chosen.count("groups_without_variance", len(found.zero_variance))
    chosen.count("groups_too_small", len(found.too_small))
    advantages = list(found.advantages)
    if config.overlong == "mask":
        advantages = mask_overlong(advantages, [row.finish_reason for row in fresh])
        chosen.count("rows_cut_off", advantages.count(None) - found.advantages.count(None))
    chosen.add(fresh, advantages)
    return chosen


def train_epochs(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    selection: Selection,
    config: TrainConfig,
    *,
    steps_done: int,
) -> tuple[dict[str, float], int, int]:
    """All optimizer steps over the selection: (metrics, steps, tokens trained). Raises ``Diverged``."""
    size = config.groups_per_step or len(selection.groups)
    batches = [
        _Batch.of(selection, slice(start, start + size), config)
        for start in range(0, len(selection.groups), size)
    ]
    single = len(batches) * config.epochs == 1
    if not single:
        for batch in batches:
            batch.freeze_proximal(policy, config)
    meter = _Meter()
    steps = tokens = 0
    for _ in range(config.epochs):
        for batch in batches:
            _set_rate(optimizer, config, steps_done + steps)
            _step(policy, optimizer, batch, config, meter)
            steps += 1
            tokens += sum(len(pack.target) for pack in batch.packs)
    return meter.means(), steps, tokens


def _shaped_reward(row: Row, config: TrainConfig) -> float | None:
    if row.reward is None or config.overlong != "shape":
        return row.reward
    return row.reward + overlong_penalty(int(row.mask.sum()), config.overlong_limit, config.overlong_cache)


@dataclass
class _Batch:
    """One optimizer step's rows and packs; ``proximal`` holds log-probabilities per pack."""

    rows: list[Row]
    packs: list[Pack]
    proximal: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, selection: Selection, part: slice, config: TrainConfig) -> "_Batch":
        rows = [row for group in selection.groups[part] for row in group]
        advantage = np.array([value for group in selection.advantages[part] for value in group])
        packs = make_packs(
            rows, advantage=advantage, weight=_token_weights(rows, config), pack_tokens=config.pack_tokens
        )
        return cls(rows, packs)

    @torch.no_grad()
    def freeze_proximal(self, policy: Policy, config: TrainConfig) -> None:
        self.proximal = [_score(policy, pack, config).logp for pack in self.packs]


def _token_weights(rows: Sequence[Row], config: TrainConfig) -> np.ndarray:
    """[R] weight of each token of a row: equal within a family, families by their weight, sum 1."""
    tokens: dict[str, int] = {}
    for row in rows:
        tokens[row.family] = tokens.get(row.family, 0) + int(row.mask.sum())
    share = {family: config.family_weights.get(family, 1.0) for family in tokens}
    total = sum(share.values())
    return np.array([share[row.family] / total / tokens[row.family] for row in rows])


def _step(
    policy: Policy, optimizer: torch.optim.Optimizer, batch: _Batch, config: TrainConfig, meter: "_Meter"
) -> None:
    parameters = list(policy.parameters().values())
    optimizer.zero_grad(set_to_none=True)
    loss = 0.0
    for index, pack in enumerate(batch.packs):
        scores = _score(policy, pack, config)
        outputs = _loss(policy, pack, scores, batch.proximal[index] if batch.proximal else None, config)
        if not torch.isfinite(outputs.loss):
            raise Diverged(f"the loss is {outputs.loss.item()}", batch.rows)
        outputs.loss.backward()  # type: ignore[no-untyped-call]
        loss += outputs.loss.item()
        meter.add_tokens(outputs, scores, len(pack.target))
    norm = torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)
    if not torch.isfinite(norm):
        raise Diverged(f"the gradient's norm is {norm.item()}", batch.rows)
    optimizer.step()
    meter.add_step(loss=loss, grad_norm=norm.item())


def _loss(
    policy: Policy, pack: Pack, scores: TokenScores, proximal: Tensor | None, config: TrainConfig
) -> LossOutputs:
    reference = None
    if config.kl_beta > 0.0:
        reference = policy.reference_logp(pack, temperature=config.temperature, chunk=config.logprob_chunk)
    inputs = LossInputs(
        logp=scores.logp,
        # A single step starts where the proximal policy is, so it needs no pass of its own.
        logp_prox=scores.logp.detach() if proximal is None else proximal,
        logp_behav=pack.logp_behav,
        advantage=pack.advantage,
        weight=pack.weight,
        logp_ref=reference,
    )
    params = LossParams(config.clip_low, config.clip_high, config.importance_cap, config.kl_beta)
    return _LOSSES[config.algorithm](inputs, params)


def _score(policy: Policy, pack: Pack, config: TrainConfig) -> TokenScores:
    return policy.score(pack, temperature=config.temperature, chunk=config.logprob_chunk)


def _set_rate(optimizer: torch.optim.Optimizer, config: TrainConfig, step: int) -> None:
    warm = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    left = max(_LAST_RATE, 1.0 - step / config.decay_steps) if config.decay_steps else 1.0
    for group in optimizer.param_groups:
        group["lr"] = config.lr * min(warm, left)


# Names of the loss's sums -> names of the means that a segment reports.
_TOKEN_MEANS = {
    "ratio": "ratio_mean",
    "clipped": "clip_fraction",
    "importance": "importance_mean",
    "importance_capped": "importance_capped_fraction",
    "engine_kl": "engine_kl",
    "kl": "kl",
    "entropy": "entropy",
}


class _Meter:
    """Means over tokens and over steps, and one maximum."""

    def __init__(self) -> None:
        self._token_sums: dict[str, float] = {}
        self._step_sums: dict[str, float] = {}
        self._importance_max = 0.0
        self._tokens = self._steps = 0

    def add_tokens(self, outputs: LossOutputs, scores: TokenScores, tokens: int) -> None:
        self._tokens += tokens
        sums = {name: value.item() for name, value in outputs.metrics.items()}
        self._importance_max = max(self._importance_max, sums.pop("importance_max"))
        for name, value in {**sums, "entropy": scores.entropy.sum().item()}.items():
            self._token_sums[name] = self._token_sums.get(name, 0.0) + value

    def add_step(self, **values: float) -> None:
        self._steps += 1
        for name, value in values.items():
            self._step_sums[name] = self._step_sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        means = {_TOKEN_MEANS[name]: value / self._tokens for name, value in self._token_sums.items()}
        means |= {name: value / self._steps for name, value in self._step_sums.items()}
        return means | {"importance_max": self._importance_max}
