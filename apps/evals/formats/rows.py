"""JSON rows: one object a line, or a list of them. Every reader of JSONL begins here.

Lines end at ``\\n`` only: U+2028 and its like are characters of the text.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from apps.evals.formats.base import Unreadable, Upload
from apps.evals.formats.values import strict_json

MAX_LINE_BYTES = 16 * 1024 * 1024  # a case may hold pictures
_BOM = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """``line`` counts from 1 in the file, blank lines included; 0 in a list without lines."""

    line: int
    value: dict[str, Any]


def rows_of(upload: Upload, *, max_line: int = MAX_LINE_BYTES) -> Iterator[Row]:
    """Every object of the file, a JSON list or JSONL. Raises ``Unreadable`` naming the line."""
    data = upload.data.removeprefix(_BOM)
    if data.lstrip()[:1] == b"[":
        yield from _listed(upload.name, data)
        return
    start = number = 0
    while start < len(data):  # one line at a time: splitting would hold the file twice
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        raw, start, number = data[start:end], end + 1, number + 1
        if raw.strip():
            yield Row(number, _object(upload.name, number, raw, max_line))


def _object(filename: str, number: int, raw: bytes, max_line: int) -> dict[str, Any]:
    if len(raw) > max_line:
        raise Unreadable(filename, f"the line is longer than {max_line // 2**20} MB", number)
    try:
        value = strict_json(raw.decode())
    except UnicodeDecodeError:
        raise Unreadable(filename, "the line is not UTF-8", number) from None
    except ValueError as error:
        raise Unreadable(filename, str(error), number) from None
    if not isinstance(value, dict):
        raise Unreadable(filename, "a case must be a JSON object", number)
    return value


def _listed(filename: str, data: bytes) -> Iterator[Row]:
    try:
        values = strict_json(data.decode())
    except UnicodeDecodeError:
        raise Unreadable(filename, "the file is not UTF-8") from None
    except ValueError as error:
        raise Unreadable(filename, str(error)) from None
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise Unreadable(filename, f"entry {number}: a case must be a JSON object")
        yield Row(0, value)
