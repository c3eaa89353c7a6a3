"""Regular expressions that people write for verifiers, made safe to run on hostile text.

Refused is what can take exponential time (a repeat inside a repeat, a repeated choice between alternatives
that can begin alike, many short ones in a row), and what grows with the fourth power of the text or faster.
The text is bounded, and where the time grows with its third power, more tightly.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from domain.verifiers.pattern_cost import TooManyWays, choices, exponent

MAX_TEXT = 20_000
_CUBIC_TEXT = 1_500  # a few seconds at worst
_MOST_EXPONENT = 3
_MAX_PATTERN = 1_000
_MAX_OPEN_REPEATS = 6
_MOST_WAYS = 20_000  # of short repeats and choices through one text
_TOO_MANY_WAYS = (
    "The pattern has repeats that can share a text in too many ways; keep them apart by characters that "
    "neither can match."
)
_FLAGS = {"ignore_case": re.IGNORECASE, "multiline": re.MULTILINE, "dot_all": re.DOTALL}
FLAG_NAMES = tuple(_FLAGS)


class UnsafePattern(ValueError):
    """The pattern is no regular expression, or one that could run for ever. For users."""


def compiled(pattern: str, flags: Iterable[str] = (), *, search: bool = True) -> re.Pattern[str]:
    """``pattern`` ready to use; without ``search`` only to match a whole text. Raises ``UnsafePattern``."""
    return _compiled(pattern, tuple(flags), search)[0]


def text_limit(pattern: str, flags: Iterable[str] = (), *, search: bool = True) -> int:
    """How many characters ``pattern`` may be run on. Raises ``UnsafePattern``."""
    return _compiled(pattern, tuple(flags), search)[1]


@lru_cache(maxsize=512)
def _compiled(pattern: str, flags: tuple[str, ...], search: bool) -> tuple[re.Pattern[str], int]:
    if len(pattern) > _MAX_PATTERN:
        raise UnsafePattern(f"A pattern has at most {_MAX_PATTERN} characters.")
    bits = 0
    for name in flags:
        bits |= _FLAGS[name]
    try:
        tree = parser.parse(pattern, bits)
        compiled_pattern = re.compile(pattern, bits)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnsafePattern(f"The pattern {pattern[:60]!r} is no regular expression: {error}.") from error
    if _open_repeats(tree, repeated=False) > _MAX_OPEN_REPEATS:
        raise UnsafePattern(f"A pattern has at most {_MAX_OPEN_REPEATS} unlimited repeats.")
    try:
        steps, ways = exponent(tree, search=search), choices(tree).ways
    except TooManyWays:
        raise UnsafePattern("The pattern repeats too much within repeats; write it flat.") from None
    if steps > _MOST_EXPONENT or ways > _MOST_WAYS:
        raise UnsafePattern(_TOO_MANY_WAYS)
    return compiled_pattern, MAX_TEXT if steps < _MOST_EXPONENT else _CUBIC_TEXT


def patterns_in(schema: Any) -> list[str]:
    """Every pattern that a JSON schema would run."""
    if isinstance(schema, list):
        return [found for item in schema for found in patterns_in(item)]
    if not isinstance(schema, Mapping):
        return []
    own = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    keys = schema.get("patternProperties")
    own += [str(key) for key in keys] if isinstance(keys, Mapping) else []
    return own + [found for value in schema.values() for found in patterns_in(value)]


def _open_repeats(tree: Any, *, repeated: bool) -> int:
    """Unlimited repeats in ``tree``. Raises ``UnsafePattern`` for a dangerous one inside a repeat."""
    total = 0
    for operator, argument in tree:
        if operator in (code.MAX_REPEAT, code.MIN_REPEAT):
            low, high, inner = argument
            varies = high != low  # even an optional part makes many ways to read one text
            if varies and repeated:
                raise UnsafePattern("The pattern repeats something that itself repeats; write it flat.")
            total += int(high == code.MAXREPEAT) + _open_repeats(inner, repeated=repeated or high > 8)
        elif operator is code.POSSESSIVE_REPEAT:
            total += 1 + _open_repeats(argument[2], repeated=False)
        elif operator is code.SUBPATTERN:
            total += _open_repeats(argument[3], repeated=repeated)
        elif operator is code.ATOMIC_GROUP:
            total += _open_repeats(argument, repeated=False)
        elif operator is code.BRANCH:
            if repeated and not _distinct([list(way) for way in argument[1]]):
                raise UnsafePattern("The pattern repeats a choice whose alternatives can begin alike.")
            total += sum(_open_repeats(way, repeated=repeated) for way in argument[1])
        elif operator in (code.ASSERT, code.ASSERT_NOT):
            total += _open_repeats(argument[1], repeated=repeated)
        elif operator is code.GROUPREF_EXISTS:
            total += sum(_open_repeats(way, repeated=repeated) for way in argument[1:] if way)
        elif operator is code.GROUPREF and repeated:
            raise UnsafePattern("The pattern repeats a reference to a group.")
    return total


def _distinct(ways: list[list[Any]]) -> bool:
    """Whether every alternative begins with a character of its own."""
    first = [way[0][1] if way and way[0][0] is code.LITERAL else None for way in ways]
    return None not in first and len(set(first)) == len(first)
