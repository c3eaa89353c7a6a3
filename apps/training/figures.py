"""The newest figures of a run, in words with units, and what was never measured left out."""

from collections.abc import Callable
from typing import NamedTuple

from apps.core.ui import numbers

Series = dict[str, list[tuple[int, float]]]


class Figure(NamedTuple):
    name: str
    value: str
    help: str


def _short(value: float) -> str:
    return f"{value:.3g}"


def _whole(value: float) -> str:
    return numbers.number(value, 0)


_ROWS: tuple[tuple[str, str, Callable[[float], str], str], ...] = (
    ("pass_rate", "Pass rate", numbers.percent, "Of the step's first draw."),
    ("reward_mean", "Mean reward", _short, "Of the step's first draw."),
    ("groups_useful", "Useful groups", _whole, "Groups whose answers earned different rewards."),
    ("staleness", "Staleness", _whole, "Policy versions between sampling and training."),
    ("loss", "Loss", _short, ""),
    ("grad_norm", "Gradient norm", _short, "Before clipping."),
    ("kl", "KL, parent", _short, "Per token, against the parent."),
    ("engine_kl", "KL, engine", _short, "Per token: the engine's probabilities against the trainer's."),
    ("entropy", "Entropy", _short, "Per token."),
    ("clip_fraction", "Clipped tokens", numbers.percent, ""),
    ("completion_tokens_mean", "Tokens per answer", _short, ""),
    ("pipeline_engine_busy_share", "Engine busy", numbers.percent, "Share of the batch's time."),
    ("pipeline_verify_busy_share", "Verifiers busy", numbers.percent, "Share of the batch's time."),
    ("pipeline_sandbox_busy_share", "Sandboxes busy", numbers.percent, "Share of the places there are."),
    ("pipeline_wall_s", "Generating took", numbers.duration, ""),
    ("seconds", "Training took", numbers.duration, ""),
)


def figures_of(series: Series) -> list[Figure]:
    """Newest value of each metric that has one."""
    return [
        Figure(name, say(series[metric][-1][1]), help_text)
        for metric, name, say, help_text in _ROWS
        if series.get(metric)
    ]
