"""Server-sent events as bytes: cut into events only at blank lines, so no character is ever split."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from artifacts.compact_json import compact_json

DONE = b"data: [DONE]\n\n"
_EVENT_LIMIT = 8 * 1024 * 1024


class Event(NamedTuple):
    name: str  # "" when the stream named none
    data: bytes


class SseSplitter:
    """Feed chunks as they come, get whole events. Raises ValueError for an event above 8 MiB.

    Comments and fields other than ``event`` and ``data`` are dropped. Lines end with LF or CRLF.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Event]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) + self._size > _EVENT_LIMIT:
            raise ValueError("event too large")
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                yield from self._dispatch()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")

    def _dispatch(self) -> Iterator[Event]:
        name, data, self._name, self._data, self._size = self._name, self._data, "", [], 0
        if data:
            yield Event(name, b"\n".join(data))


def encode_event(payload: Any) -> bytes:
    """One ``data:`` event; JSON has no raw line break, so one line is enough."""
    return b"data: " + compact_json(payload) + b"\n\n"
