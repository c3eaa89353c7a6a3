"""Places in a JSON value: how they are written, looked up, and how two values differ.

A path is a JSON pointer (RFC 6901) with two additions: a negative number counts a list from its end,
and in a pattern ``*`` stands for any one part.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

Json = Any


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()  # there is no value at a path; null is one
_ANY = "*"


def parts_of(path: str) -> tuple[str, ...]:
    """Raises ``ValueError`` for what is no path."""
    if not path:
        return ()
    if not path.startswith("/"):
        raise ValueError(f"a path starts with /: {path!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))


def written(parts: Sequence[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def at(value: Json, path: str) -> Json:
    """The value at ``path``, or ``MISSING``."""
    for part in parts_of(path):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and (index := _index(part, len(value))) is not None:
            value = value[index]
        else:
            return MISSING
    return value


def with_value(value: Json, path: str, new: Json) -> Json:
    """``value`` with ``new`` at ``path``: in place of what is there, as a new key of an object, or with
    ``-`` as the last part at a list's end. Nothing is changed in place. Raises ``ValueError`` where there
    is nothing around the place."""
    parts = parts_of(path)
    if not parts:
        return new
    first, rest = parts[0], written(parts[1:])
    if isinstance(value, dict):
        if rest and first not in value:
            raise ValueError(f"there is no {first!r} around the place")
        return {**value, first: with_value(value.get(first), rest, new) if rest else new}
    if isinstance(value, list):
        if first == "-" and not rest:
            return [*value, new]
        index = _index(first, len(value))
        if index is None:
            raise ValueError(f"the list has no place {first!r}")
        return [*value[:index], with_value(value[index], rest, new), *value[index + 1 :]]
    raise ValueError(f"{first!r} would stand in a {type(value).__name__}")


def covers(pattern: str, parts: Sequence[str], sizes: Sequence[int | None]) -> bool:
    """Whether ``pattern`` names the place ``parts`` or one around it. ``sizes`` are the lengths of the
    lists that the parts lead through (None: an object), so that -1 can be told."""
    wanted = parts_of(pattern)
    if len(wanted) > len(parts):
        return False
    return all(
        want in (_ANY, part) or (size is not None and str(_index(want, size)) == part)
        for want, part, size in zip(wanted, parts, sizes, strict=False)
    )


def differences(before: Json, after: Json) -> Iterator[tuple[tuple[str, ...], tuple[int | None, ...]]]:
    """The innermost places at which two values differ, with the sizes of the lists on the way."""
    yield from _differences(before, after, (), ())


def _differences(
    before: Json, after: Json, parts: tuple[str, ...], sizes: tuple[int | None, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[int | None, ...]]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            old, new = before.get(key, MISSING), after.get(key, MISSING)
            yield from _differences(old, new, (*parts, str(key)), (*sizes, None))
    elif isinstance(before, list) and isinstance(after, list):
        size = max(len(before), len(after))
        for index in range(size):
            old = before[index] if index < len(before) else MISSING
            new = after[index] if index < len(after) else MISSING
            yield from _differences(old, new, (*parts, str(index)), (*sizes, size))
    elif type(before) is not type(after) or before != after:
        if {type(before), type(after)} == {int, float} and before == after:
            return
        yield parts, sizes


def _index(part: str, size: int) -> int | None:
    if not part.removeprefix("-").isdecimal() or len(part) > 9:
        return None
    index = int(part)
    index = index + size if part.startswith("-") else index
    return index if 0 <= index < size else None
