"""Helpers that test files import as ``checks``; the text of this file is put beside them in a sandbox.

Standard library only. ``same`` compares by type and value and stands for an assertion; ``raises``
expects an error, also one that happened on the other side of a wall.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def same(got: Any, expected: Any) -> None:
    """``got`` must equal ``expected`` in type and value, all the way down; floats to 1e-9."""
    if not _same(got, expected):
        raise AssertionError(f"got {_short(got)}, expected {_short(expected)}")


class raises:
    """``with raises(ValueError): …`` passes when the block raised that kind of error, or one of its
    kind by name when the error's class lies behind a wall."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        wanted = getattr(self._kind, "__name__", "")
        if error is None:
            raise AssertionError(f"nothing was raised, expected {wanted}")
        if isinstance(self._kind, type):
            return isinstance(error, self._kind)
        return wanted in getattr(error, "remote_names", ())


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return bool(a == b) or abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is dict:
        return {_key(k) for k in a} == {_key(k) for k in b} and all(_same(a[k], b[k]) for k in a)
    if type(a) in (set, frozenset):
        return {_key(x) for x in a} == {_key(x) for x in b}
    if type(a) in (int, bool, str, bytes, complex, type(None)):
        return bool(a == b)
    return False


def _key(value: Any) -> Any:
    return (type(value).__name__, value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
