"""The reward of an episode, in three layers: terminal, process, format.

All terms come from a verdict's checks, that is from what a verifier or a sandbox saw. Order of any
two rewards: unknown (None) < no-op 0 ≤ failed ≤ 0.2 < passed, which starts at 0.6.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from domain.contracts import Check, Verdict

FAILED_CAP = 0.2
PASSED_FLOOR = 0.6


@dataclass(frozen=True)
class RewardWeights:
    """Relative weights of the layers. A layer without a check is left out, not counted as 0."""

    terminal: float = 2.0
    process: float = 1.0
    format: float = 1.0

    def __post_init__(self) -> None:
        if self.terminal <= 0 or self.process < 0 or self.format < 0:
            raise ValueError("the terminal weight must be positive and no weight negative")


class Reward(NamedTuple):
    """``value`` in [0, 1], or None when nobody could judge: then it leaves every baseline and
    denominator. ``terms`` add up to ``value``."""

    value: float | None
    terms: dict[str, float]


def episode_reward(
    verdict: Verdict | None, *, no_op: bool = False, weights: RewardWeights | None = None
) -> Reward:
    """Reward of one episode. ``no_op`` says that the policy did nothing.

    A failed episode earns for process and format only when its terminal score is above 0, so that
    the right form without any right content earns nothing; a broken guard earns nothing either.
    """
    if verdict is None or verdict.score is None:
        return Reward(None, {})
    layers = _layers(verdict.score, verdict.checks, weights or RewardWeights())
    if verdict.state == "passed":
        terms = {name: (1.0 - PASSED_FLOOR) * value for name, value in layers.items()}
        terms["terminal"] += PASSED_FLOOR
    elif no_op or verdict.score == 0.0 or _guard_broken(verdict.checks):
        terms = dict.fromkeys(layers, 0.0)
    else:
        terms = {name: FAILED_CAP * value for name, value in layers.items()}
    return Reward(min(1.0, sum(terms.values())), terms)


def _layers(score: float, checks: Iterable[Check], weights: RewardWeights) -> dict[str, float]:
    """Weighted share of each layer; the shares add up to at most 1."""
    checks = tuple(checks)
    found = {"terminal": (weights.terminal, score)}
    for name, weight in (("process", weights.process), ("format", weights.format)):
        scores = [check.score for check in checks if check.role == name and check.score is not None]
        if scores and weight > 0:
            found[name] = (weight, sum(scores) / len(scores))
    total = sum(weight for weight, _ in found.values())
    return {name: weight * value / total for name, (weight, value) in found.items()}


def _guard_broken(checks: Iterable[Check]) -> bool:
    return any(check.role == "guard" and check.score == 0.0 for check in checks)
