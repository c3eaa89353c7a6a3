"""What differs between two versions of a suite: cases added, removed and changed, field by field.

Ids and digests of both versions are read; contents only of the cases that are shown. Held-out cases are
counted and named, and what they say stays hidden from those who may not read it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from apps.core.permissions import Actor
from apps.evals.held_out import may_see
from apps.evals.models import Case, SuiteVersion
from domain.contracts import TaskSpec

KINDS = ("changed", "added", "removed")


class Field(NamedTuple):
    """One field of a case on both sides, as text; empty where a side has none."""

    name: str
    old: str
    new: str


class Entry(NamedTuple):
    """``before`` and ``after`` are ids of case revisions, None where there is none."""

    kind: str
    key: str
    before: int | None
    after: int | None


class Shown(NamedTuple):
    """An entry with its content. ``hidden``: held out, and not for the one who looks."""

    kind: str
    key: str
    family: str
    split: str
    hidden: bool
    fields: list[Field]


class SuiteDiff(NamedTuple):
    old: SuiteVersion
    new: SuiteVersion
    entries: list[Entry]
    added: int
    removed: int
    changed: int
    unchanged: int
    moved: bool  # the same cases in another order

    def of_kind(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind] if kind else self.entries


def suite_diff(old: SuiteVersion, new: SuiteVersion) -> SuiteDiff:
    before, after = _revisions(old), _revisions(new)
    entries = [
        Entry("changed", key, before[key], after[key])
        for key in after
        if key in before and before[key] != after[key]
    ]
    entries += [Entry("added", key, None, pk) for key, pk in after.items() if key not in before]
    entries += [Entry("removed", key, pk, None) for key, pk in before.items() if key not in after]
    counts = {kind: sum(1 for entry in entries if entry.kind == kind) for kind in KINDS}
    shared = [key for key in before if key in after]
    return SuiteDiff(
        old,
        new,
        entries,
        **counts,
        unchanged=len(after) - counts["changed"] - counts["added"],
        moved=shared != [key for key in after if key in before],
    )


def entries_shown(entries: Sequence[Entry], actor: Actor) -> list[Shown]:
    """The entries with what their cases say, in one query."""
    wanted = {pk for entry in entries for pk in (entry.before, entry.after) if pk is not None}
    cases = {case.pk: case for case in Case.objects.filter(pk__in=wanted)}
    return [_shown(entry, cases, actor) for entry in entries if _there(entry, cases)]


def _there(entry: Entry, cases: Mapping[int, Case]) -> bool:
    return all(pk is None or pk in cases for pk in (entry.before, entry.after))


def _shown(entry: Entry, cases: Mapping[int, Case], actor: Actor) -> Shown:
    before = cases[entry.before] if entry.before is not None else None
    after = cases[entry.after] if entry.after is not None else None
    last = after or before
    assert last is not None
    sides = [case for case in (before, after) if case is not None]
    hidden = not may_see(actor) and any(case.split == Case.Split.HELD_OUT for case in sides)
    fields = [] if hidden else _fields(before.task if before else {}, after.task if after else {})
    return Shown(entry.kind, entry.key, last.family, last.split, hidden, fields)


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Field]:
    """Fields that differ, in the order in which a case is written."""
    order = TaskSpec.model_fields  # a database may keep keys in an order of its own
    return [
        Field(name, _text(old, name), _text(new, name)) for name in order if old.get(name) != new.get(name)
    ]


def _text(body: Mapping[str, Any], name: str) -> str:
    if name not in body:
        return ""
    value = body[name]
    if name == "messages":
        return "\n".join(f"{message.get('role')}: {_said(message)}" for message in value)
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    rest = {key: value for key, value in message.items() if key not in ("role", "content")}
    said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return f"{said} {json.dumps(rest, ensure_ascii=False)}" if rest else said


def _revisions(version: SuiteVersion) -> dict[str, int]:
    rows = version.suiteversioncase_set.order_by("index").values_list("case__key", "case_id")
    return dict(rows.iterator(chunk_size=5000))
