"""Marked stretches of a text, and what happens where two of them overlap."""

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

PLACEHOLDER = re.compile(r"<([A-Z][A-Z0-9_]*?)_([1-9][0-9]*)>")  # what stands where a span stood


class Span(NamedTuple):
    """``text[start:end]`` looks like an ``entity`` with confidence ``score`` in [0, 1]."""

    entity: str
    start: int
    end: int
    score: float


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Disjoint spans in order of position: the higher score wins, then the longer one.

    What the winner does not cover stays marked under the loser's entity, so that settling an overlap
    never uncovers a character. A span inside the winner disappears: an e-mail is one entity.
    """
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (-s.score, s.start - s.end, s.start, s.entity)):
        for part in outside(span, kept):
            insort(kept, part, key=_start)
    return kept


def outside(span: Span, others: Sequence[Span]) -> list[Span]:
    """The parts of ``span`` that none of ``others`` covers; ``others`` are disjoint and in order."""
    parts, position = [], span.start
    first = max(0, bisect_right(others, span.start, key=_start) - 1)
    for other in islice(others, first, None):
        if other.start >= span.end:
            break
        if other.start > position:
            parts.append(span._replace(start=position, end=other.start))
        position = max(position, other.end)
    if position < span.end:
        parts.append(span._replace(start=position))
    return parts


def _start(span: Span) -> int:
    return span.start
