"""JSON from strangers, read strictly, and texts in whatever encoding they came.

What a database could not hold, or another reader would read otherwise, is a problem in words: NaN, a
key that stands twice, half a surrogate pair, the NUL character, nesting without end.
"""

import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Sequence
from typing import Any

from apps.evals.formats.base import MAX_BYTES, Unreadable, Upload

MAX_DEPTH = 64
_LARGEST = 10**308  # beyond, no float holds a whole number
_BOM = b"\xef\xbb\xbf"
_NOT_FINITE = re.compile(r"\s*[+-]?(nan|inf(inity)?)\s*", re.IGNORECASE)


def strict_json(raw: str) -> Any:
    """The value of ``raw``. Raises ``ValueError`` with the reason in words."""
    try:
        value = json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    if problem := value_problem(value):
        raise ValueError(problem)
    return value


def value_problem(value: Any) -> str:
    """Why a JSON value cannot be stored everywhere, in words; empty if it can."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str):
                if problem := text_problem(item):
                    return problem
            elif isinstance(item, int | float):
                if not in_range(item):
                    return "a number is out of range"
            elif item is not None:
                return f"a value of the kind {type(item).__name__} is no plain data"
        if not below:
            return ""
        level = below
    return f"it is nested deeper than {MAX_DEPTH} levels"


def in_range(number: float) -> bool:
    """Whether every reader of JSON can hold ``number``."""
    return -_LARGEST < number < _LARGEST if isinstance(number, int) else math.isfinite(number)


def text_problem(text: str) -> str:
    if "\0" in text:
        return "a text holds the NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a text holds half of a surrogate pair"
    return ""


def not_finite(text: str) -> bool:
    """Whether a cell says NaN or Infinity, which is no value."""
    return bool(_NOT_FINITE.fullmatch(text))


def decoded(upload: Upload, notes: list[str]) -> str:
    """The file as text: UTF-8 or UTF-16 by its mark, UTF-8 without, else Windows-1252, which is noted."""
    data = upload.data
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                raise Unreadable(upload.name, "the file begins as UTF-16 and does not stay so") from None
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        if b"\0" in data[:4096]:
            raise Unreadable(upload.name, "the file is not text") from None
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            line = data.count(b"\n", 0, error.start) + 1
            raise Unreadable(upload.name, "the line is neither UTF-8 nor Windows-1252", line) from None
        notes.append(f"{upload.name} is not UTF-8; it was read as Windows-1252.")
        return text


def all_unzipped(uploads: Sequence[Upload]) -> list[Upload]:
    """Every file as ``unzipped`` gives it; together they are bounded as one is."""
    files, left = [], MAX_BYTES
    for upload in uploads:
        files.append(unzipped(upload, left))
        left -= len(files[-1].data)
    return files


def unzipped(upload: Upload, most: int = MAX_BYTES) -> Upload:
    """The content of a gzip file of at most ``most`` bytes; any other file as it is."""
    if not upload.data.startswith(b"\x1f\x8b"):
        return upload
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(upload.data)) as stream:
            data = stream.read(max(0, most) + 1)
    except (OSError, EOFError, zlib.error):
        raise Unreadable(upload.name, "the gzip file is damaged") from None
    if len(data) > most:
        raise Unreadable(upload.name, f"unpacked, the files are larger than {MAX_BYTES // 2**20} MB")
    return Upload(upload.name.removesuffix(".gz"), data)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON allows")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key “{key[:60]}” stands twice in one object")
        found[key] = value
    return found
