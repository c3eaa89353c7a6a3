"""Dates as documents write them, read by value.

``2024-05-01``, ``2024/05/01``, ``01.05.2024`` (day first), ``1 May 2024``, ``May 1, 2024``. With
slashes and two small numbers the order is unknown, and the date is not read unless it is given.
Two-digit years are not read.
"""

import re
from datetime import date
from typing import Literal

DateOrder = Literal["unknown", "dmy", "mdy"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar", "february feb februar", "march mar märz", "april apr", "may mai",
            "june jun juni", "july jul juli", "august aug", "september sep sept",
            "october oct oktober okt", "november nov", "december dec dezember dez",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
_DAY_NAME = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?\.? ([a-zä]+)\.?,? ([0-9]{4})")
_NAME_DAY = re.compile(r"([a-zä]+)\.? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})")


def parse_date(text: object, order: DateOrder = "unknown") -> date | None:
    """The date that ``text`` is, or None when it is no date or could be two."""
    if not isinstance(text, str):
        return None
    text = " ".join(text.split()).lower()
    if match := _YEAR_FIRST.fullmatch(text):
        return _date(int(match[1]), int(match[3]), int(match[4]))
    if match := _YEAR_LAST.fullmatch(text):
        return _year_last(int(match[1]), int(match[3]), int(match[4]), "dmy" if match[2] == "." else order)
    if match := _DAY_NAME.fullmatch(text):
        return _date(int(match[3]), _MONTHS.get(match[2], 0), int(match[1]))
    if match := _NAME_DAY.fullmatch(text):
        return _date(int(match[3]), _MONTHS.get(match[1], 0), int(match[2]))
    return None


def _year_last(first: int, second: int, year: int, order: DateOrder) -> date | None:
    if order == "dmy":
        return _date(year, second, first)
    if order == "mdy":
        return _date(year, first, second)
    readings = {_date(year, second, first), _date(year, first, second)} - {None}
    return readings.pop() if len(readings) == 1 else None


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
