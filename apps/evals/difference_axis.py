"""Several paired differences on one axis around a common zero: coordinates and words, nothing decided."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from apps.core.ui.numbers import digits_for, number, signed
from apps.core.ui.plots import Tick
from domain.paired import PairedDifference

WIDTH, EDGE = 220, 14.0
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_TONES = {"better": "tone-pass", "worse": "tone-fail"}


class Row(NamedTuple):
    """``x``, ``low`` and ``high`` are pixels, None where nothing is drawn; ``what`` is the caller's own."""

    what: Any
    difference: PairedDifference
    x: float | None
    low: float | None
    high: float | None
    tone: str
    verdict: str
    text: str


class Axis(NamedTuple):
    width: int
    zero: float
    left: float
    right: float
    ticks: tuple[Tick, ...]
    rows: list[Row]


def difference_axis(rows: Sequence[tuple[Any, PairedDifference, str, bool]]) -> Axis:
    """From (anything, difference, verdict, n too small): the axis spans what is drawn, zero in its middle."""
    reach = max(_reaches(difference for _, difference, _, small in rows if not small), default=0.05)
    step = next((size for size in _STEPS if reach / size <= 2), 0.5)
    span = min(1.0, step * max(1, math.ceil(reach / step - 1e-9)))

    def place(share: float | None) -> float | None:
        if share is None:
            return None
        inside = min(span, max(-span, share))
        return round(WIDTH / 2 + (WIDTH / 2 - EDGE) * inside / span, 1)

    steps = round(span / step)
    ticks = tuple(
        Tick(place(at * step) or 0.0, signed(100 * at * step, 0) if at else "0")
        for at in range(-steps, steps + 1)
    )
    drawn = [
        Row(
            what=what,
            difference=difference,
            x=None if small else place(difference.mean),
            low=None if small else place(difference.low),
            high=None if small else place(difference.high),
            tone=_TONES.get(verdict, "quiet"),
            verdict="too_small" if small else verdict,
            text="n too small" if small else _short(difference),
        )
        for what, difference, verdict, small in rows
    ]
    return Axis(WIDTH, WIDTH / 2, EDGE, WIDTH - EDGE, ticks, drawn)


def _short(difference: PairedDifference) -> str:
    """“−5 (−15 to 5)” in points, no digit finer than the interval."""
    if difference.mean is None or difference.low is None or difference.high is None:
        return "n too small"
    digits = digits_for(100 * (difference.high - difference.low))
    low, high = (number(100 * limit, digits) for limit in (difference.low, difference.high))
    return f"{signed(100 * difference.mean, digits)} ({low} to {high})"


def _reaches(differences: Iterable[PairedDifference]) -> list[float]:
    return [abs(value) for d in differences for value in (d.mean, d.low, d.high) if value is not None]
