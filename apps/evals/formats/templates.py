"""Templates with double braces, filled with plain values. Filters, loops and code are no values."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from apps.evals.formats.parts import NoEquivalent, said

_FIELD = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\]|\[['\"][^'\"\]]+['\"]\])*")
_STEP = re.compile(r"[\w-]+|(?<=\[)\d+(?=\])|(?<=\[['\"])[^'\"\]]+(?=['\"]\])")
_MOST = 200_000  # characters of one filled template
_TOO_LONG = f"filled, the template is longer than {_MOST:,} characters"


def filled(template: str, lookup: Callable[[str], str]) -> str:
    """``template`` with each ``{{path}}`` replaced by ``lookup(path)``. Raises ``NoEquivalent``."""
    if "{%" in template or "{#" in template:
        raise NoEquivalent("the template has loops or conditions, which are not followed")
    pieces: list[str] = []
    position = size = 0
    for match in _FIELD.finditer(template):
        path = match.group(1)
        if not _PATH.fullmatch(path):
            raise NoEquivalent(f"the template computes something: {{{{{path[:60]}}}}}")
        pieces += [template[position : match.start()], lookup(path)]
        position = match.end()
        size += len(pieces[-1]) + len(pieces[-2])
        if size > _MOST:
            raise NoEquivalent(_TOO_LONG)
    if size + len(template) - position > _MOST:
        raise NoEquivalent(_TOO_LONG)
    return "".join([*pieces, template[position:]])


def fields_of(template: str) -> list[str]:
    return [match.group(1) for match in _FIELD.finditer(template)]


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """What ``path`` names in ``values``. Raises ``NoEquivalent`` where it names nothing."""
    current: Any = values
    for step in _STEP.findall(path):
        if isinstance(current, Mapping) and step in current:
            current = current[step]
        elif isinstance(current, list) and step.isdecimal() and int(step) < len(current):
            current = current[int(step)]
        else:
            raise NoEquivalent(f"the template asks for {{{{{path[:60]}}}}}, which is not there")
    return current


def filled_from(template: str, values: Mapping[str, Any]) -> str:
    return filled(template, lambda path: said(value_at(values, path)))
