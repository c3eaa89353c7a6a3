"""How many requests a batch keeps open at an endpoint that has limits.

The limits themselves hold for everybody together and are kept by the gateway, which queues what comes
too early. More requests than the endpoint takes in a quarter of a minute would only wait there, each
against its deadline, and be in the way of other batches.
"""

from collections.abc import Sequence
from math import ceil

from domain.contracts import EngineTarget, TaskSpec

_USEFUL_MINUTES = 0.25
_CHARS_PER_TOKEN = 4


def useful_concurrency(target: EngineTarget, tasks: Sequence[TaskSpec], asked: int) -> int:
    """``asked``, or less where the endpoint's terms allow less; at least 1."""
    most = min(asked, target.max_concurrency or asked)
    if target.requests_per_minute is not None:
        most = min(most, ceil(target.requests_per_minute * _USEFUL_MINUTES))
    if target.tokens_per_minute is not None and tasks:
        mean = sum(map(_tokens, tasks)) / len(tasks)
        most = min(most, ceil(target.tokens_per_minute * _USEFUL_MINUTES / mean))
    return max(1, most)


def _tokens(task: TaskSpec) -> float:
    """About how many tokens one turn of ``task`` takes."""
    asked = sum(len(str(message.content or "")) for message in task.messages)
    return max(1.0, asked / _CHARS_PER_TOKEN + task.max_tokens)
