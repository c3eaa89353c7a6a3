"""Differences between texts by name: files that a step changed, documents of a mock service."""

import hashlib
from collections.abc import Mapping

from domain.contracts import FileChange
from workers.sandbox.diff import unified


def text_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FileChange, ...]:
    """One entry for each name whose text differs, in order of name."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        _change(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _change(name: str, before: str | None, after: str | None) -> FileChange:
    kept = after if after is not None else before
    return FileChange(
        path=name,
        change="added" if before is None else "removed" if after is None else "modified",
        before=_digest(before),
        after=_digest(after),
        bytes=len((kept or "").encode()),
        diff=unified(name, before or "", after or ""),
    )


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()
