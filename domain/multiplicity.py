"""Many findings at once: which of them stand."""

from collections.abc import Sequence
from typing import NamedTuple


class Discoveries(NamedTuple):
    """In the order of the input: adjusted p values, and which of them stand at the asked rate."""

    adjusted: tuple[float, ...]
    rejected: tuple[bool, ...]


def benjamini_hochberg(p_values: Sequence[float], rate: float = 0.05) -> Discoveries:
    """Which of many slices stand when a share ``rate`` of false ones is accepted.

    Source: Benjamini and Hochberg, JRSS B 57 (1995): the step-up rule as adjusted p values.
    """
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise ValueError("p values must lie in [0, 1]")
    count = len(p_values)
    adjusted = [1.0] * count
    smallest = 1.0
    for rank, index in reversed(list(enumerate(sorted(range(count), key=p_values.__getitem__), start=1))):
        smallest = min(smallest, p_values[index] * count / rank)
        adjusted[index] = smallest
    return Discoveries(tuple(adjusted), tuple(value <= rate for value in adjusted))
