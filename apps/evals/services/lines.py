"""JSONL of our own, in and out: one ``TaskSpec`` a line. Errors name file, line and reason, never the text.

How lines are read, and what is refused on them, is in ``apps/evals/formats``.
"""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

from apps.core.errors import Refused
from apps.evals.formats import Options, Unreadable, Upload
from apps.evals.formats.base import first_problem
from apps.evals.formats.jsonl import read_tasks
from apps.evals.formats.values import value_problem
from apps.evals.services.suites import verifier_problem
from domain.contracts import TaskSpec

MAX_BYTES = 64 * 1024 * 1024


class Line(NamedTuple):
    """``number`` counts from 1 in the file, blank lines included."""

    number: int
    task: TaskSpec


def parse_lines(*, filename: str, data: bytes) -> list[Line]:
    """The cases of a file. A byte order mark is ignored, blank lines are skipped; two cases with
    one id and a verifier that cannot judge its case are refused."""
    size_checked(filename, len(data))
    try:
        found = read_tasks([Upload(filename, data)], Options())
    except Unreadable as error:
        raise refused(error) from None
    if not found.tasks:
        refuse(filename, 0, "the file holds no case")
    lines = [Line(number, task) for number, task in zip(found.lines, found.tasks, strict=True)]
    for line in lines:
        if problem := verifier_problem(line.task):
            refuse(filename, line.number, problem[1], code=problem[0])
    return lines


def written_lines(tasks: Iterable[TaskSpec]) -> bytes:
    """The file that reads back as exactly ``tasks``."""
    return b"".join(written_stream(task.model_dump(mode="json", exclude_defaults=True) for task in tasks))


def written_stream(rows: Iterable[object]) -> Iterator[bytes]:
    """One line for each row, as it comes."""
    return (json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n" for row in rows)


def size_checked(filename: str, size: int | None) -> None:
    if size is not None and size > MAX_BYTES:
        refuse(filename, 0, f"the file is larger than {MAX_BYTES // 2**20} MB")


def refuse(filename: str, line: int, reason: str, code: str = "import_invalid") -> NoReturn:
    raise refused(Unreadable(filename, reason, line, code))


def refused(error: Unreadable) -> Refused:
    return Refused(str(error), code=error.code, file=error.filename, line=error.line)


__all__ = [
    "MAX_BYTES",
    "Line",
    "first_problem",
    "parse_lines",
    "refuse",
    "refused",
    "size_checked",
    "value_problem",
    "written_lines",
    "written_stream",
]
