"""JSON without leniency: one value, no duplicate keys, no NaN or infinity, nothing around it."""

import json
import math
import re
from decimal import Decimal
from typing import Any

from domain.verifiers.base import shown

_FENCE = re.compile(r"\s*```(?:json|JSON)?[ \t]*\r?\n(?P<body>.*?)\r?\n?```\s*", re.DOTALL)
_MAX_DIGITS = 400


class NotStrictJson(ValueError):
    """The text is not exactly one strict JSON value. The message says why, for users."""


def parse_strict(text: str, *, fence: bool = False) -> Any:
    """The one JSON value in ``text``. Fractions come back as ``Decimal``.

    With ``fence`` the text may be wrapped in one Markdown code fence. Raises ``NotStrictJson``.
    """
    if fence and (match := _FENCE.fullmatch(text)):
        text = match["body"]
    text = text.strip(" \t\r\n")
    if not text:
        raise NotStrictJson("The answer is empty.")
    try:
        value, end = decode_at(text, 0)
    except json.JSONDecodeError as error:
        raise NotStrictJson(f"The answer is not JSON: {error.msg} at character {error.pos + 1}.") from error
    if end != len(text):
        raise NotStrictJson(f"The answer goes on after the JSON value: {shown(text[end:].strip(), 40)}.")
    return value


def parse_strict_object(text: str, *, fence: bool = False) -> dict[str, Any]:
    """As ``parse_strict``, and the value must be an object."""
    value = parse_strict(text, fence=fence)
    if not isinstance(value, dict):
        raise NotStrictJson("The answer is JSON, but not an object.")
    return value


def decode_at(text: str, start: int) -> tuple[Any, int]:
    """The strict JSON value that begins at ``start``, and where it ends. Raises ``NotStrictJson``, and
    ``json.JSONDecodeError`` where no JSON stands."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise NotStrictJson("The JSON is nested too deeply.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise NotStrictJson(f"The key {shown(key, 40)} appears twice.")
        result[key] = value
    return result


def _constant(name: str) -> Any:
    raise NotStrictJson(f"{name} is not allowed in JSON.")


def _fraction(text: str) -> Decimal:
    if len(text) > _MAX_DIGITS or not math.isfinite(float(text)):
        raise NotStrictJson(f"The number {shown(text, 40)} is out of range.")
    return Decimal(text)


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise NotStrictJson(f"The number {shown(text, 40)} is out of range.")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_fraction, parse_int=_integer
)
