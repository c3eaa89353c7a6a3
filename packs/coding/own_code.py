"""Runs source that this pack wrote itself, to compute what its tasks expect. Never an answer's code."""

import copy
from collections.abc import Callable, Mapping
from typing import Any


def function(source: str, name: str) -> Callable[..., Any]:
    """The function ``name`` of ``source``; each call gets copies of its arguments."""
    found = namespace(source)[name]

    def call(*args: Any) -> Any:
        return found(*copy.deepcopy(args))

    return call


def namespace(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "pack"}
    exec(compile(source, "<pack>", "exec"), space)
    return space


def printed(source: str) -> str:
    """What ``source`` prints."""
    lines: list[str] = []

    def show(*values: Any, sep: str = " ") -> None:
        lines.append(sep.join(map(str, values)))

    exec(compile(source, "<pack>", "exec"), {"__name__": "pack", "print": show})
    return "\n".join(lines)


def differs(source: str, name: str, calls: list[tuple[Any, ...]], expected: list[Any]) -> bool:
    """Whether ``source`` gives something else on one of the calls, or an error."""
    try:
        found = function(source, name)
        return any(_unlike(found(*args), want) for args, want in zip(calls, expected, strict=True))
    except Exception:
        return True


def _unlike(got: Any, want: Any) -> bool:
    if type(got) is not type(want):
        return True
    if isinstance(got, Mapping):
        return got != want or list(map(type, got.values())) != list(map(type, want.values()))
    return bool(got != want)
