"""Geometry and words of the two small plots: a score with its interval, a paired difference.

Shares are in [0, 1], differences in [-1, 1]; coordinates are pixels of the SVG. Nothing here
decides anything: verdicts arrive from ``domain.stats`` and are only put into words.
"""

import math
from dataclasses import dataclass
from typing import Any

from apps.core.ui.numbers import count, digits_for, number, percent, ranged, signed
from apps.core.ui.reading import read
from domain import summary
from domain.paired import PairedDifference

SMALL_N = 10
_POSITIVE = {"better", "passed", "pass"}
_NEGATIVE = {"worse", "failed", "fail"}


@dataclass(frozen=True)
class Mark:
    """One row of a plot. ``x`` is None where there is no value to draw."""

    label: str
    text: str
    x: float | None
    low: float | None
    high: float | None
    y: float = 0.0
    quiet: bool = False


@dataclass(frozen=True)
class Tick:
    x: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Plot:
    width: int
    height: int
    left: float
    right: float
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...] = ()
    zero: float | None = None
    tone: str = ""


@dataclass(frozen=True)
class _Numbers:
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    clusters: int | None


def _numbers(source: Any) -> _Numbers:
    interval = read(source, "interval", "ci", default=source)
    return _Numbers(
        value=read(source, "value", "mean", "rate", "pass_rate", "score", "estimate"),
        low=read(interval, "low", "lower"),
        high=read(interval, "high", "upper"),
        n=read(source, "n", "scored", "count", default=read(interval, "n")),
        clusters=read(source, "clusters", "sources", "n_clusters", default=read(interval, "clusters")),
    )


def score_text(source: Any, small: int = SMALL_N) -> str:
    """Read "71 % (64–77), n = 212, 40 sources"; a small n says so instead of giving a number."""
    if source is None:
        return "no data"
    data = _numbers(source)
    if data.value is None or data.n == 0:
        return "no data"
    if data.n is not None and data.n < small:
        return f"n too small (n = {data.n})"
    if data.low is None or data.high is None:
        text = percent(data.value)
    else:
        text = ranged(data.value, data.low, data.high)
    if data.n is not None:
        text += f", n = {number(data.n)}"
    if data.clusters is not None and data.clusters != data.n:
        text += f", {count(data.clusters, 'source')}"
    return text


def score_plot(source: Any, width: int = 120) -> Plot:
    """A score alone, on a fixed axis from 0 to 100 %."""
    left, right = 6.0, width - 6.0
    return Plot(width, 16, left, right, (_mark("", source, 0.0, 1.0, left, right, 8.0),))


def scores_plot(rows: list[tuple[str, Any]]) -> Plot:
    """Several scores on one axis that is cut to what they span; the first is the subject."""
    known = [_numbers(source) for _, source in rows]
    lows = [n.low if n.low is not None else n.value for n in known if n.value is not None]
    highs = [n.high if n.high is not None else n.value for n in known if n.value is not None]
    low = max(0.0, math.floor(10 * min((v for v in lows if v is not None), default=0.0)) / 10)
    high = min(1.0, math.ceil(10 * max((v for v in highs if v is not None), default=1.0)) / 10)
    if high - low < 0.2:
        low, high = (max(0.0, high - 0.2), high) if high >= 0.2 else (0.0, 0.2)
    left, right = 140.0, 560.0
    step = 0.1 if high - low <= 0.61 else 0.2
    marks = tuple(
        _mark(label, source, low, high, left, right, 20.0 + 28 * row, quiet=row > 0)
        for row, (label, source) in enumerate(rows)
    )
    steps = round((high - low) / step)
    ticks = tuple(
        Tick(
            left + (right - left) * i * step / (high - low),
            f"{100 * (low + i * step):.0f}" + (" %" if not i else ""),
        )
        for i in range(steps + 1)
    )
    return Plot(820, 28 * len(rows) + 30, left, right, marks, ticks)


def _mark(
    label: str, source: Any, low: float, high: float, left: float, right: float, y: float, quiet: bool = False
) -> Mark:
    def place(value: float | None) -> float | None:
        if value is None:
            return None
        inside = min(1.0, max(0.0, (value - low) / (high - low)))
        return round(left + (right - left) * inside, 1)

    text = score_text(source)
    if source is None or text.startswith(("no data", "n too small")):
        return Mark(label, text, None, None, None, y, quiet)
    data = _numbers(source)
    return Mark(label, text, place(data.value), place(data.low), place(data.high), y, quiet)


def difference_tone(source: Any) -> str:
    """pass, fail, or empty for what is not decided: undecided is grey."""
    verdict = str(getattr(v := read(source, "verdict", default=""), "value", v)).lower()
    return "pass" if verdict in _POSITIVE else "fail" if verdict in _NEGATIVE else ""


def difference_plot(source: Any, width: int = 560) -> Plot:
    """The paired difference in points around a zero line; the axis is symmetric about zero."""
    data = _numbers(source)
    value = data.value if data.value is not None else read(source, "difference")
    reach = max((abs(v) for v in (value, data.low, data.high) if v is not None), default=0.05)
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if reach / s <= 4), 0.5)
    span = step * max(1, math.ceil(reach / step))
    left, right = 24.0, width - 24.0

    def place(share: float | None) -> float | None:
        return None if share is None else round((left + right) / 2 + (right - left) / 2 * share / span, 1)

    steps = round(span / step)
    ticks = tuple(
        Tick(place(i * step) or 0.0, signed(100 * i * step, 0) if i else "0")
        for i in range(-steps, steps + 1)
    )
    mark = Mark("", difference_text(source), place(value), place(data.low), place(data.high), 18.0)
    tone = difference_tone(source)
    return Plot(
        width,
        54,
        left,
        right,
        (mark,),
        ticks,
        zero=(left + right) / 2,
        tone=f"tone-{tone}" if tone else "quiet",
    )


def difference_text(source: Any) -> str:
    """Read "+6 points (2 to 10, paired, n = 212, 40 sources)"."""
    data = _numbers(source)
    value = data.value if data.value is not None else read(source, "difference")
    if value is None:
        return "no data"
    width = 100 * (data.high - data.low) if data.low is not None and data.high is not None else 0.0
    digits = digits_for(width) if width else 1
    text = f"{signed(100 * value, digits)} points"
    tail = []
    if data.low is not None and data.high is not None:
        tail.append(f"{number(100 * data.low, digits)} to {number(100 * data.high, digits)}")
    tail.append("paired")
    if data.n is not None:
        tail.append(f"n = {number(data.n)}")
    if data.clusters is not None and data.clusters != data.n:
        tail.append(count(data.clusters, "source"))
    return f"{text} ({', '.join(tail)})"


def verdict_sentence(source: Any) -> str:
    """The verdict's own sentence if it has one, else words for better, worse, cannot tell."""
    if isinstance(source, PairedDifference):
        return summary.verdict_sentence(source)
    own = read(source, "sentence")
    if own:
        return str(own)
    tone = difference_tone(source)
    if tone:
        return ("Better" if tone == "pass" else "Worse") + f": {difference_text(source)}."
    needed, margin = read(source, "needed", "more_needed", "more"), read(source, "margin", "resolution")
    if not needed:
        return f"Cannot tell yet: {difference_text(source)}."
    settle = f"a {100 * float(margin):g}-point difference" if margin else "it"
    return f"Cannot tell yet; about {number(int(needed))} more cases would settle {settle}."
