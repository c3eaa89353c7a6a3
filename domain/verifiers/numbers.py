"""Numbers as people write them in documents, read by value.

Currency signs and codes, thousands and decimal separators (``1,234.50``, ``1.234,50``,
``1 234,50``, ``1'234.50``), accounting parentheses for negatives, percent (12 % is 0.12) and
scale words are understood. A lone comma before exactly three digits groups thousands (``1,234``
is 1234), a lone point is a decimal point (``1.234``), unless the decimal sign is given.
"""

import math
import re
import unicodedata
from decimal import Decimal
from typing import Literal, NamedTuple

DecimalSign = Literal["auto", ".", ","]

_CODES = (
    "USD|EUR|GBP|JPY|CNY|RMB|CHF|CAD|AUD|INR|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|KRW|SGD|HKD|NZD|ZAR|TRY|ILS|THB"
)
_CURRENCY = rf"(?:(?:US|CA|AU)?\$|[€£¥₹]|\b(?:{_CODES})\b)"
_CORE = re.compile(
    r"(?<![0-9])(?:"
    r"[0-9]{1,3}(?:[ '\u2019][0-9]{3})+(?![0-9])(?:[.,][0-9]+)?"  # grouped by space or apostrophe
    r"|[0-9]+(?:[.,][0-9]+)*"
    r"|\.[0-9]+)"
    r"(?:[eE][+-]?[0-9]{1,3}(?![0-9]))?"
)
_BEFORE = re.compile(
    r"(?P<open>\(\s*)?(?P<sign1>(?<![0-9A-Za-z)])[-+\u2212\u2013])?"
    rf"(?:{_CURRENCY}\s*(?P<sign2>[-+\u2212\u2013])?)?$"
)
_AFTER = re.compile(
    rf"\s?(?:(?P<percent>%)|(?P<scale>(?:thousand|million|billion|tsd|mio|mrd|mn|bn)\b\.?))?"
    rf"(?:\s?{_CURRENCY})?(?P<close>\s*\))?",
    re.IGNORECASE,
)
_SCALES = {
    "thousand": 3, "tsd": 3, "million": 6, "mio": 6, "mn": 6, "billion": 9, "mrd": 9, "bn": 9,
}  # fmt: skip
_MAX_DIGITS = 60
_LOOK_BACK = 16


class Found(NamedTuple):
    """A number in a text. ``value`` is None when its separators make no sense; the span
    includes sign, currency and unit."""

    value: Decimal | None
    start: int
    end: int


def find_numbers(text: str, decimal: DecimalSign = "auto") -> list[Found]:
    """Every number in ``text``, in order. Spans refer to the NFKC-normalised text."""
    text = unicodedata.normalize("NFKC", text)
    return [_read(text, match, decimal) for match in _CORE.finditer(text)]


def parse_number(value: object, decimal: DecimalSign = "auto") -> Decimal | None:
    """``value`` as a number, or None: a finite JSON number, or a text that is one number and
    nothing else. Booleans are not numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return Decimal(str(value)) if _finite(value) else None
    if not isinstance(value, str):
        return None
    text = unicodedata.normalize("NFKC", value).strip()
    found = find_numbers(text, decimal)
    if len(found) != 1 or found[0].start != 0 or found[0].end != len(text):
        return None
    return found[0].value


def close(a: Decimal, b: Decimal, tolerance: float, relative: float) -> bool:
    """|a - b| ≤ max(tolerance, relative · |b|), in exact decimal arithmetic; ``b`` is the reference."""
    allowed = max(Decimal(str(tolerance)), Decimal(str(relative)) * abs(b))
    return abs(a - b) <= allowed


def _read(text: str, match: re.Match[str], decimal: DecimalSign) -> Found:
    offset = max(0, match.start() - _LOOK_BACK)
    before = _BEFORE.search(text[offset : match.start()])
    after = _AFTER.match(text, match.end())
    assert before is not None  # both patterns can match nothing
    assert after is not None

    value = _value(match.group(), decimal)
    in_parentheses = before["open"] is not None and after["close"] is not None
    start, end = offset + before.start(), after.end()
    if before["open"] is not None and not in_parentheses:
        start = offset + before.end("open")
    if after["close"] is not None and not in_parentheses:
        end = after.start("close")
    if value is None:
        return Found(None, start, end)

    signs = {before["sign1"], before["sign2"]} & {"-", "\u2212", "\u2013"}
    if in_parentheses or signs:
        value = -value
    if after["percent"]:
        value = value.scaleb(-2)
    if after["scale"]:
        value = value.scaleb(_SCALES[after["scale"].lower().rstrip(".")])
    return Found(value, start, end)


def _value(token: str, decimal: DecimalSign) -> Decimal | None:
    mantissa, _, exponent = token.lower().partition("e")
    mantissa = re.sub(r"[ '\u2019]", "", mantissa)
    if len(mantissa) > _MAX_DIGITS:
        return None
    plain = _without_groups(mantissa, decimal)
    return None if plain is None else Decimal(f"{plain}e{exponent or 0}")


def _without_groups(text: str, decimal: DecimalSign) -> str | None:
    """``text`` with thousands separators removed and a point as the decimal sign."""
    commas, points = text.count(","), text.count(".")
    if decimal == "auto":
        decimal = _guess(text, commas, points)
    group = "," if decimal == "." else "."
    whole, mark, fraction = text.partition(decimal)
    if group in fraction or decimal in fraction:
        return None
    if group in whole and not re.fullmatch(rf"[0-9]{{1,3}}(?:\{group}[0-9]{{3}})+", whole):
        return None
    return whole.replace(group, "") + ("." + fraction if mark else "")


def _guess(text: str, commas: int, points: int) -> DecimalSign:
    if commas and points:
        return "," if text.rindex(",") > text.rindex(".") else "."
    if points > 1:
        return ","
    if commas != 1:
        return "."
    whole, _, fraction = text.partition(",")
    groups_thousands = len(fraction) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0"
    return "." if groups_thousands else ","


def _finite(value: int | float | Decimal) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
