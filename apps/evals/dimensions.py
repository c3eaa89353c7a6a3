"""What the results of a run are added up by: the family of a case, and its tags with few values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apps.evals.models import SuiteVersion
from domain.tally import Part

FAMILY = "family"
TAG = "tag:"
MAX_FAMILIES = 1_000
MAX_VALUES = 100
MAX_TAGS = 20
MAX_TEXT = 100
_MOST_NAMES = 200  # names of tags that are looked at


def dimensions_of_version(version: SuiteVersion) -> list[str]:
    """ "family" and "tag:<name>" of every tag that has at most ``MAX_VALUES`` different values.

    A tag that tells every case apart, or holds lists, is no part of a run that one would read.
    """
    rows = version.cases.order_by("pk").values_list("family", "tags")
    return dimensions_of(rows.iterator(chunk_size=2_000))


def dimensions_of(cases: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    families: set[str] = set()
    values: dict[str, set[str] | None] = {}
    for family, tags in cases:
        if len(families) <= MAX_FAMILIES:
            families.add(family)
        for name, value in tags.items():
            if name not in values and len(values) >= _MOST_NAMES:
                continue
            seen = values.setdefault(name, set() if is_name(name) else None)
            if seen is None or value is None:
                continue
            text = value_text(value)
            if text is None or (len(seen) >= MAX_VALUES and text not in seen):
                values[name] = None
            else:
                seen.add(text)
    tags_kept = sorted(name for name, seen in values.items() if seen)[:MAX_TAGS]
    return [*([FAMILY] if len(families) <= MAX_FAMILIES else []), *(TAG + name for name in tags_kept)]


def parts_of(family: str, tags: Mapping[str, Any], dimensions: Sequence[str]) -> list[Part]:
    """The parts of a run that a case belongs to, beside the whole."""
    parts: list[Part] = []
    for dimension in dimensions:
        if dimension == FAMILY:
            parts.append((FAMILY, family))
            continue
        value = tags.get(dimension.removeprefix(TAG))
        text = None if value is None else value_text(value)
        if text is not None:
            parts.append((dimension, text))
    return parts


def value_text(value: Any) -> str | None:
    """A tag's value as text; None for what is not one short value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        text = str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)
        return text if len(text) <= MAX_TEXT else None
    if isinstance(value, str) and value and len(value) <= MAX_TEXT and value.isprintable():
        return value
    return None


def is_name(name: str) -> bool:
    return bool(name) and len(name) <= MAX_TEXT and name.isprintable()
