"""What every format gives: cases, what was left out and why, notes. Files are read, never trusted.

A file that is damaged is refused whole (``Unreadable``); a part of it that has no equivalent here is
left out by name, line and reason. Nothing is dropped in silence.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from domain.contracts import TaskSpec

MAX_BYTES = 64 * 1024 * 1024
MAX_CASES = 100_000
# What the cases of one import hold together: templates can make far more of a file than it holds.
MAX_TEXT = 2 * MAX_BYTES
MAX_JUDGED_BY = 100  # criteria or scorers of one file; each is looked at for every case
# What reading a file raises whose parts are other things than the format has there.
WRONG_SHAPE = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


class Unreadable(ValueError):
    """The file cannot be taken. The text is for users; ``line`` is 0 where no line is to blame."""

    def __init__(self, filename: str, reason: str, line: int = 0, code: str = "import_invalid") -> None:
        where = f"{filename}, line {line}" if line else filename
        super().__init__(f"{where}: {reason.rstrip('.')}. Nothing was imported.")
        self.filename, self.reason, self.line, self.code = filename, reason, line, code


class Upload(NamedTuple):
    """One file as it was sent."""

    name: str
    data: bytes


class LeftOut(NamedTuple):
    """``where`` is a line or a place in the file, ``name`` what was left out: a case, an assertion."""

    where: str
    name: str
    reason: str


class Column(NamedTuple):
    """One column of a table and what it is read as: an entry of ``ROLES``, ``tags`` or nothing."""

    name: str
    role: str


@dataclass
class Imported:
    """``lines`` holds the line of each task in its file, 0 where a format has none. ``whole``: the file
    is one of ours, taken whole or not at all."""

    tasks: list[TaskSpec] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    whole: bool = False
    size: int = 0  # characters of all texts in ``tasks``

    def leave_out(self, where: str, name: str, reason: str) -> None:
        if len(self.left_out) >= MAX_CASES:
            raise Unreadable(where, f"more than {MAX_CASES:,} parts cannot be taken; the last: {reason}")
        self.left_out.append(LeftOut(where, name[:120], reason))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def add(self, where: str, line: int = 0, **fields: Any) -> None:
        """One case; one that breaks the contract is left out with its reason."""
        if len(self.tasks) >= MAX_CASES:
            raise Unreadable(where, f"more than {MAX_CASES:,} cases; a suite version holds no more")
        self.size += size_of(fields)
        if self.size > MAX_TEXT:
            raise Unreadable(
                where, f"written out, the cases up to here hold more than {MAX_TEXT // 2**20} MB of text"
            )
        try:
            task = TaskSpec.model_validate(fields)
        except ValidationError as error:
            self.leave_out(where, str(fields.get("id", "case")), first_problem(error))
            return
        self.tasks.append(task)
        self.lines.append(line)


@dataclass(frozen=True)
class Options:
    """What a person may decide: the format, how columns are read, what judges, the family, the prompt.

    ``columns`` maps a column to a role; a column that is not named is read by its name.
    """

    format: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    verifier: str = ""
    family: str = ""
    prompt: str = ""


@dataclass(frozen=True)
class Format:
    """``read(uploads, options)``: the first upload is the one that was recognised."""

    name: str
    title: str
    read: Callable[[Sequence[Upload], Options], Imported]


def size_of(value: Any) -> int:
    """Characters of all texts in ``value``, keys included."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return total


def first_problem(error: ValidationError) -> str:
    """Place and reason of the first error, without the input, which may be captured text."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def content_id(prefix: str, messages: Any, taken: set[str]) -> str:
    """An id that stays while what is asked stays, wherever the case stands in its file."""
    said = json.dumps(messages, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stem = f"{prefix}-{hashlib.sha256(said).hexdigest()[:10]}"
    return unused(stem, taken)


def unused(stem: str, taken: set[str]) -> str:
    """``stem``, or ``stem-2`` and so on where it is taken; the result is taken then."""
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def family_of(filename: str, options: Options) -> str:
    """The family that was asked for, or the file's name as a word."""
    stem = filename.rpartition("/")[2].partition(".")[0]
    return (options.family or re.sub(r"[^\w]+", "_", stem).strip("_").lower() or "imported")[:100]
