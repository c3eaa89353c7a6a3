"""Numbers as text: shares, points, durations and ages, never finer than what is known."""

import re
from datetime import datetime

MINUS = "−"
_UNIT = re.compile(r"(?<=\d) (?=%)|(?<=\bn) (?== )|(?<=\bn =) (?=\d)")


def digits_for(width: float) -> int:
    """Decimals worth showing when an interval is ``width`` wide, both in the unit shown."""
    if width >= 1:
        return 0
    return 1 if width >= 0.1 else 2


def number(value: float, decimals: int = 0) -> str:
    """Thousands separated, a real minus sign, no negative zero."""
    text = f"{value:,.{decimals}f}"
    if text.startswith("-"):
        text = text[1:] if float(text.replace(",", "")) == 0 else MINUS + text[1:]
    return text


def percent(share: float | None, decimals: int = 0) -> str:
    """0.71 → "71 %"; None → "no data"."""
    return "no data" if share is None else f"{number(100 * share, decimals)} %"


def ranged(share: float, low: float, high: float) -> str:
    """``ranged(0.71, 0.64, 0.77)`` → "71 % (64–77)", no finer than the interval."""
    digits = digits_for(100 * (high - low))
    return f"{percent(share, digits)} ({number(100 * low, digits)}–{number(100 * high, digits)})"


def unbroken(text: str) -> str:
    """No line ends between a number and its "%", nor within "n = 40": for pages, not for the API."""
    return _UNIT.sub("\u00a0", text)


def signed(value: float, decimals: int = 1) -> str:
    text = number(value, decimals)
    return text if value <= 0 or float(f"{value:.{decimals}f}") == 0 else f"+{text}"


def duration(seconds: float | None) -> str:
    """Two units at most, rounded: "640 ms", "3 s", "4 min 10 s", "2 d 4 h"."""
    if seconds is None:
        return "unknown"
    seconds = max(0.0, float(seconds))
    if round(1000 * seconds) < 1000:
        return f"{1000 * seconds:.0f} ms"
    for unit, size, smaller, smaller_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        parts = int(seconds / smaller_size + 0.5)
        if parts * smaller_size >= size:
            whole, rest = divmod(parts, size // smaller_size)
            return f"{whole} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{int(seconds + 0.5)} s"


def rate(per_s: float) -> str:
    """Two digits that count, in the unit that has them: "140/s", "3.2/s", "12/min", "0.50/h"."""
    unit, value = "s", per_s
    for longer, size in (("min", 60), ("h", 3600)):
        if value < 1:
            unit, value = longer, per_s * size
    return f"{number(value, 0 if value >= 10 else 1 if value >= 1 else 2)}/{unit}"


def age(then: datetime, now: datetime) -> str:
    """Time since ``then`` in the largest sensible unit pair; "now" within a second."""
    seconds = (now - then).total_seconds()
    return "now" if seconds < 1 else duration(seconds)


def ago(then: datetime, now: datetime) -> str:
    """Read "3 min ago", "in 2 h", "just now": one unit only."""
    seconds = (now - then).total_seconds()
    if abs(seconds) < 2:
        return "just now"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if abs(seconds) >= size:
            span = f"{int(abs(seconds) // size)} {unit}"
            return f"{span} ago" if seconds > 0 else f"in {span}"
    return "just now"


def count(n: int, one: str, many: str = "") -> str:
    """``count(1, "case")`` → "1 case"; ``count(2, "case")`` → "2 cases"."""
    return f"{number(n)} {one if n == 1 else many or one + 's'}"
