"""CSV: one case a row. Delimiter and encoding are found out; columns are read by name or as told.

Rows that cannot be a case are left out by line: too few or too many cells, NaN, nothing asked.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apps.evals.formats.base import (
    Column,
    Imported,
    Options,
    Unreadable,
    Upload,
    content_id,
    family_of,
    unused,
)
from apps.evals.formats.jsonl import messages_of, verifier_for
from apps.evals.formats.parts import NoEquivalent
from apps.evals.formats.splits import TAG, split_named
from apps.evals.formats.values import decoded, in_range, not_finite, strict_json, text_problem

ROLES = ("id", "input", "system", "messages", "expected", "family", "source", "split")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "case", "key", "task_id", "name"),
    "input": ("input", "prompt", "question", "query", "text", "user"),
    "system": ("system", "system_prompt"),
    "messages": ("messages",),
    "expected": (
        "expected", "ideal", "answer", "output", "reference", "target", "expected_output", "ground_truth",
        "label",
    ),
    "family": ("family", "category", "task"),
    "source": ("source", "cluster", "group"),
    "split": ("split", "set", "partition"),
}  # fmt: skip
_DELIMITERS = (",", ";", "\t", "|")
_CELL_BYTES = 1024 * 1024
_MOST_COLUMNS = 1_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class _Record(NamedTuple):
    """``line`` is where it begins in the file; a quoted cell may go over several."""

    line: int
    cells: list[str]


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    (upload, *others) = uploads
    found, taken = Imported(), set[str]()
    for other in others:
        found.leave_out(other.name, "file", "a table is one file; send it on its own")
    text = decoded(upload, found.notes)
    delimiter = _delimiter(text)
    records = _records(upload.name, text, delimiter)
    header = next(records, None)
    if header is None:
        raise Unreadable(upload.name, "the file holds no case")
    names = _header(upload.name, header)
    found.columns = _columns(upload.name, names, options)
    if delimiter != ",":
        found.note(f"Cells are parted by {'tabs' if delimiter == chr(9) else f'“{delimiter}”'}.")
    unread = [column.name for column in found.columns if not column.role]
    if unread:
        found.note(f"Columns that are not read: {', '.join(unread)}.")
    rows = list(_rows(found, names, records))
    verifier = options.verifier or _verifier(found.columns, rows)
    for line, row in rows:
        _case(found, line, row, options, verifier, family_of(upload.name, options), taken)
    return found


def looks_like(text: str) -> bool:
    """Whether the first two records have the same number of cells, more than one."""
    sample = _records("", text[:20_000], _delimiter(text))
    try:
        first, second = next(sample), next(sample)
    except (StopIteration, Unreadable):
        return False
    return len(first.cells) == len(second.cells) > 1


def _delimiter(text: str) -> str:
    """The one that gives the most cells in equally long records; the comma where none does."""
    best, chosen = 1, ","
    for delimiter in _DELIMITERS:
        sample = _records("", text[:20_000], delimiter)
        counts: list[int] = []
        try:
            for record, _ in zip(sample, range(20), strict=False):
                counts.append(len(record.cells))
        except Unreadable:
            pass
        whole = counts[:-1] if len(text) > 20_000 and len(counts) > 1 else counts
        if not whole:
            continue
        usual, times = Counter(whole).most_common(1)[0]
        if usual == whole[0] and times * 2 >= len(whole) and usual > best:
            best, chosen = usual, delimiter
    return chosen


def _records(filename: str, text: str, delimiter: str) -> Iterator[_Record]:
    csv.field_size_limit(_CELL_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 0
    while True:
        start = line + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            said = str(error)
            why = "a cell is larger than 1 MB" if "limit" in said else f"not CSV: {said}"
            if "unexpected end" in said:
                why = "a quoted cell that begins here is never closed"
            raise Unreadable(filename, why, start) from None
        line = reader.line_num
        if any(cell.strip() for cell in cells):
            yield _Record(start, cells)


def _header(filename: str, header: _Record) -> list[str]:
    if len(header.cells) > _MOST_COLUMNS:
        raise Unreadable(filename, f"the header has more than {_MOST_COLUMNS:,} columns", header.line)
    names = [
        name.strip().strip("\ufeff").strip() or f"column {at}" for at, name in enumerate(header.cells, 1)
    ]
    if problem := text_problem("".join(names)):
        raise Unreadable(filename, problem, header.line)
    for name, times in Counter(names).items():
        if times > 1:
            places = " and ".join(str(at) for at, each in enumerate(names, 1) if each == name)
            raise Unreadable(filename, f"two columns are called “{name}”: {places}", header.line)
    return names


def _columns(filename: str, names: Sequence[str], options: Options) -> list[Column]:
    known = {name.lower(): name for name in names}
    roles: dict[str, str] = {}
    for name, role in options.columns.items():
        if name not in names:
            raise Unreadable(filename, f"there is no column “{name}”")
        if role and role not in ROLES and not role.startswith("tags"):
            raise Unreadable(filename, f"a column is read as one of {', '.join(ROLES)} or tags, not “{role}”")
        roles[name] = role
    for role in ROLES:
        if role in roles.values():
            continue
        free = (known[each] for each in _NAMES[role] if each in known and known[each] not in roles)
        if (found := next(free, None)) is not None:
            roles[found] = role
    for name in names:
        if name not in roles and name.lower().startswith("tags.") and len(name) > 5:
            roles[name] = "tags"
    twice = [role for role, times in Counter(roles.values()).items() if times > 1 and role in ROLES]
    if twice:
        raise Unreadable(filename, f"two columns are read as {twice[0]}; choose one")
    read_as = set(roles.values())
    if not read_as & {"input", "messages"} or "expected" not in read_as:
        missing = "what is expected" if read_as & {"input", "messages"} else "what is asked"
        raise Unreadable(
            filename,
            f"no column holds {missing}; choose one of: {', '.join(names)[:300]}",
            code="columns_needed",
        )
    return [Column(name, roles.get(name, "")) for name in names]


def _rows(
    found: Imported, names: Sequence[str], records: Iterator[_Record]
) -> Iterator[tuple[int, dict[str, str]]]:
    roles = {column.name: column.role for column in found.columns}
    for line, cells in records:
        where = f"line {line}"
        if len(cells) != len(names):
            many = f"{len(cells)} cells, the header has {len(names)}"
            found.leave_out(where, "row", f"the row has {many}")
            continue
        row = dict(zip(names, cells, strict=True))
        read_cells = {name: cell for name, cell in row.items() if roles[name]}
        problem = next((f"{n}: {why}" for n, cell in read_cells.items() if (why := _problem(cell))), "")
        if problem:
            found.leave_out(where, "row", problem)
            continue
        yield line, row


def _problem(cell: str) -> str:
    if not_finite(cell):
        return f"{cell.strip()} is no value"
    return text_problem(cell)


def _verifier(columns: Sequence[Column], rows: Sequence[tuple[int, dict[str, str]]]) -> str:
    """Numbers are judged as numbers where all of the column are; texts as texts, whatever their case."""
    name = next(column.name for column in columns if column.role == "expected")
    cells = [row[name].strip() for _, row in rows if row[name].strip()]
    return "numeric" if cells and all(_NUMBER.fullmatch(cell) for cell in cells) else "exact_any_case"


def _case(
    found: Imported, line: int, row: Mapping[str, str], options: Options, verifier: str, family: str,
    taken: set[str],
) -> None:  # fmt: skip
    where = f"line {line}"
    by_role = {column.role: row[column.name] for column in found.columns if column.role in ROLES}
    name = by_role.get("id", "").strip() or "row"
    expected = by_role["expected"].strip()
    try:
        messages = _asked(by_role)
        if not expected:
            raise NoEquivalent("nothing is expected")
        wanted = _expected(expected, verifier)
        verdict = verifier_for(wanted, verifier)
    except (NoEquivalent, ValueError) as problem:
        found.leave_out(where, name, str(problem))
        return
    tags = {
        column.name.removeprefix("tags."): _tag(row[column.name])
        for column in found.columns
        if column.role.startswith("tags") and row[column.name].strip()
    }
    if by_role.get("split", "").strip():
        split = split_named(by_role["split"])
        if not split:
            found.leave_out(
                where, name, f"“{by_role['split'][:40]}” is no split: train, validation, held_out"
            )
            return
        tags[TAG] = split
    case_id = by_role.get("id", "").strip()
    if case_id in taken:
        found.leave_out(where, case_id, "another row has the same id")
        return
    found.add(
        where,
        line,
        id=unused(case_id, taken) if case_id else content_id("row", messages, taken),
        family=by_role.get("family", "").strip() or family,
        messages=messages,
        verifier=verdict.verifier,
        reference=verdict.reference,
        source=by_role.get("source", "").strip(),
        tags=tags,
    )


def _asked(by_role: Mapping[str, str]) -> list[dict[str, Any]]:
    if by_role.get("messages", "").strip():
        value = strict_json(by_role["messages"])
        if not isinstance(value, list):
            raise NoEquivalent("messages is no JSON list of messages")
        return messages_of(value, by_role.get("system"))
    if not by_role.get("input", "").strip():
        raise NoEquivalent("nothing is asked")
    return messages_of(by_role["input"], by_role.get("system"))


def _expected(text: str, verifier: str) -> Any:
    if verifier == "json":
        return strict_json(text)
    if verifier == "numeric" and _NUMBER.fullmatch(text):
        number = int(text) if text.lstrip("+-").isdecimal() else float(text)
        if not in_range(number):
            raise NoEquivalent("a number is out of range")
        return number
    return text


def _tag(cell: str) -> Any:
    """A whole number where the cell writes one as we would; anything else is text."""
    text = cell.strip()
    return (
        int(text)
        if len(text) < 16 and text.removeprefix("-").isdecimal() and str(int(text)) == text
        else text
    )
