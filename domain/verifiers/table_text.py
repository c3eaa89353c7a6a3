"""Tables as models write them: a JSON list of objects, a Markdown table, CSV. Read into rows."""

import csv
import io
import re
from typing import Any

from domain.verifiers.base import shown
from domain.verifiers.strict_json import NotStrictJson, parse_strict

Row = dict[str, Any]

_FENCE = re.compile(r"\s*```[a-zA-Z]*[ \t]*\r?\n(?P<body>.*?)\r?\n?```\s*", re.DOTALL)
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
MAX_ROWS = 5_000


class NotATable(ValueError):
    """The text is not exactly one table of this form. The message is for users."""


def read_json_rows(text: str, path: str = "", *, fence: bool = False) -> list[Row]:
    """The list of objects in ``text``, under the dotted ``path`` of keys where there is one."""
    try:
        value = parse_strict(text, fence=fence)
    except NotStrictJson as error:
        raise NotATable(str(error)) from error
    for key in path.split(".") if path else []:
        if not isinstance(value, dict) or key not in value:
            raise NotATable(f"The answer has no part {path!r}.")
        value = value[key]
    what = f"The part {path!r}" if path else "The answer"
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise NotATable(f"{what} is not a list of objects.")
    return _bounded(value)


def read_markdown_rows(text: str) -> list[Row]:
    """The one Markdown table in ``text``; other lines may stand around it."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip().startswith("|"):
            blocks[-1].append(line.strip())
        elif blocks[-1]:
            blocks.append([])
    tables = [block for block in blocks if block]
    if len(tables) != 1:
        raise NotATable(f"Exactly one Markdown table is expected; the answer holds {len(tables)}.")
    lines = tables[0]
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]):
        raise NotATable("The Markdown table has no line of dashes under its header.")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]
    return _rows(cells)


def read_csv_rows(text: str) -> list[Row]:
    """All of ``text`` as CSV with a header; the separator is the header's comma or semicolon."""
    if match := _FENCE.fullmatch(text):
        text = match["body"]
    header = text.lstrip().partition("\n")[0]
    separator = ";" if header.count(";") > header.count(",") else ","
    try:
        lines = list(csv.reader(io.StringIO(text.strip()), delimiter=separator, strict=True))
    except csv.Error as error:
        raise NotATable(f"The CSV cannot be read: {error}.") from error
    cells = [[cell.strip() for cell in line] for line in lines if line]
    if not cells:
        raise NotATable("The answer is empty.")
    return _rows(cells)


def _rows(cells: list[list[str]]) -> list[Row]:
    names, *lines = cells
    if len(set(names)) != len(names):
        raise NotATable("Two columns have the same name.")
    for number, line in enumerate(lines, start=1):
        if len(line) != len(names):
            raise NotATable(f"Row {number} has {len(line)} cells under {len(names)} headers: {shown(line)}.")
    return _bounded([dict(zip(names, line, strict=True)) for line in lines])


def _bounded(rows: list[Row]) -> list[Row]:
    if len(rows) > MAX_ROWS:
        raise NotATable(f"A table has at most {MAX_ROWS} rows; the answer has {len(rows)}.")
    return rows
