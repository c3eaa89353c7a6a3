"""Charts: a bar is read off, a peak found, two series compared."""

import random

from packs.seeded import Draft
from packs.visual.canvas import Canvas

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WHAT = ("Tickets", "Orders", "Returns", "Visits", "Refunds", "Signups")
_SERIES = (("North", "#3b55c9"), ("South", "#c2410c"), ("West", "#1d7a4a"))
_LEFT, _TOP, _RIGHT, _BOTTOM = 52, 40, 16, 34
_WIDTH, _HEIGHT = 560, 320
_TICKS = 5


def bar_value(rng: random.Random) -> Draft:
    """One bar is asked for; every value stands on a grid line or in the middle between two."""
    what, months, step = rng.choice(_WHAT), _months(rng, 7), rng.choice((10, 20, 40))
    values = [value * step // 2 for value in rng.sample(range(2, 2 * _TICKS), len(months))]
    canvas = _frame(f"{what} by month", months, step)
    for at, value in enumerate(values):
        _bar(canvas, at, len(months), 0, 1, value, step, _SERIES[0][1])
    asked = rng.randrange(len(months))
    right = values[asked]
    return Draft(
        prompt=f"How many {what.lower()} does the chart show for {months[asked]}? Answer with the number "
        "only.",
        verifier="numeric",
        params={},
        reference=right,
        gold=str(right),
        bad={
            "bar beside it": str(values[asked - 1]),
            "grid line below": str(right - step // 2),
            "top of the axis": str(step * _TICKS + step),
            "sum of all": str(sum(values)),
        },
        layout="bars",
        origin=what,
        image=canvas.png,
        image_key=f"{what} {months} {values}",
    )


def line_peak(rng: random.Random) -> Draft:
    """The month in which one of three lines is highest; no line has its peak twice."""
    what, months, step = rng.choice(_WHAT), _months(rng, 8), 10
    series = _apart(rng, len(months))
    canvas = _frame(f"{what} by month", months, step)
    for (_, colour), values in zip(_SERIES, series, strict=True):
        points = [(_middle(at, len(months)), _y(value, step)) for at, value in enumerate(values)]
        canvas.line(points, colour, 2)
        for x, y in points:
            canvas.ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)
    _legend(canvas)
    chosen = rng.randrange(len(series))
    peaks = [months[values.index(max(values))] for values in series]
    lows = [months[values.index(min(values))] for values in series]
    right = peaks[chosen]
    others = [month for month in (*peaks, lows[chosen], months[0], months[-1], *months) if month != right]
    bad = dict(
        zip(("another line's peak", "second guess", "third guess"), dict.fromkeys(others), strict=False)
    )
    return Draft(
        prompt=f"In which month is the line of {_SERIES[chosen][0]} highest? Answer with the month as the "
        "axis writes it.",
        verifier="exact",
        params={"normalize": True},
        reference=right,
        gold=right,
        bad=bad,
        layout="lines",
        origin=what,
        image=canvas.png,
        image_key=f"{what} {months} {series} {chosen}",
    )


def bar_difference(rng: random.Random) -> Draft:
    """By how much one of two bars of a month is higher."""
    what, months, step = rng.choice(_WHAT), _months(rng, 5), rng.choice((10, 20))
    pairs = [tuple(value * step // 2 for value in rng.sample(range(1, 2 * _TICKS), 2)) for _ in months]
    canvas = _frame(f"{what} by month and region", months, step)
    for at, pair in enumerate(pairs):
        for part, value in enumerate(pair):
            _bar(canvas, at, len(months), part, 2, value, step, _SERIES[part][1])
    _legend(canvas, 2)
    asked = rng.randrange(len(months))
    low, high = sorted(pairs[asked])
    right = high - low
    return Draft(
        prompt=f"By how many {what.lower()} do North and South differ in {months[asked]}? Answer with the "
        "number only.",
        verifier="numeric",
        params={},
        reference=right,
        gold=str(right),
        bad={
            "the higher bar": str(high),
            "both together": str(low + high),
            "half a grid line off": str(right + step // 2),
        },
        layout="pairs of bars",
        origin=what,
        image=canvas.png,
        image_key=f"{what} {months} {pairs}",
    )


def _apart(rng: random.Random, count: int) -> list[list[int]]:
    """Values of each line, of which no two have a point in common: one would hide the other."""
    while True:
        series = [[value * 5 for value in rng.sample(range(1, 10), count)] for _ in _SERIES]
        if all(len(set(points)) == len(series) for points in zip(*series, strict=True)):
            return series


def _months(rng: random.Random, count: int) -> tuple[str, ...]:
    first = rng.randrange(len(MONTHS) - count + 1)
    return MONTHS[first : first + count]


def _frame(title: str, months: tuple[str, ...], step: int) -> Canvas:
    canvas = Canvas(_WIDTH, _HEIGHT)
    canvas.text((_LEFT, 16), title, size=15)
    for tick in range(_TICKS + 1):
        y = _y(tick * step, step)
        canvas.line([(_LEFT, y), (_WIDTH - _RIGHT, y)], "#d4d4d0")
        canvas.text((_LEFT - 8, y), str(tick * step), size=12, anchor="rm")
    for at, month in enumerate(months):
        canvas.text((_middle(at, len(months)), _HEIGHT - 18), month, size=12, anchor="mm")
    return canvas


def _y(value: float, step: int) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / (step * _TICKS)


def _middle(at: int, count: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (at + 0.5) / count


def _bar(
    canvas: Canvas, at: int, count: int, part: int, parts: int, value: int, step: int, colour: str
) -> None:
    room = (_WIDTH - _LEFT - _RIGHT) / count * 0.7
    left = _middle(at, count) - room / 2 + room * part / parts
    canvas.box((left, _y(value, step), left + room / parts - 2, _y(0, step)), fill=colour)


def _legend(canvas: Canvas, count: int = len(_SERIES)) -> None:
    for at, (name, colour) in enumerate(_SERIES[:count]):
        x = _WIDTH - _RIGHT - 80 * (count - at)
        canvas.box((x, 11, x + 12, 21), fill=colour)
        canvas.text((x + 18, 16), name, size=12)
