"""The host's end of the stream to an agent. Everything that arrives may be hostile.

Lengths are checked before anything is held, a header is one small JSON object, and a frame that no
honest agent sends means that the sandbox is lost.
"""

import asyncio
from typing import Any, NamedTuple

from workers.sandbox.agent.frames import BODY_LIMIT, LENGTHS, BrokenFrame, lengths, pack, parse

READER_LIMIT = BODY_LIMIT


class Lost(RuntimeError):
    """The agent is gone or speaks nonsense; the message says which."""


class Frame(NamedTuple):
    kind: str
    header: dict[str, Any]
    body: bytes


class Wire:
    """Frames over a pair of asyncio streams. A read that is cancelled loses nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lengths: tuple[int, int] | None = None
        self._header: dict[str, Any] | None = None

    def say(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send one frame without waiting; a lost agent is noticed by the next read."""
        self._writer.write(pack(header, body))

    async def ask(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a request with a body of any size. Raises ``Lost``."""
        view = memoryview(body)
        try:
            self._writer.write(pack({**header, "size": len(body)}, view[:BODY_LIMIT]))
            for start in range(BODY_LIMIT, len(view), BODY_LIMIT):
                self._writer.write(pack({}, view[start : start + BODY_LIMIT]))
                await self._writer.drain()
            if len(body) > BODY_LIMIT:
                await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            raise Lost(f"the sandbox hung up ({error})") from error

    async def frame(self) -> Frame:
        """The next frame. Raises ``Lost``."""
        try:
            if self._lengths is None:
                self._lengths = lengths(await self._reader.readexactly(LENGTHS.size))
            if self._header is None:
                self._header = parse(await self._reader.readexactly(self._lengths[0]))
            body = await self._reader.readexactly(self._lengths[1]) if self._lengths[1] else b""
        except BrokenFrame as error:
            raise Lost(f"the sandbox sent {error}") from error
        except asyncio.IncompleteReadError as error:
            raise Lost("the sandbox hung up") from error
        except ConnectionError as error:
            raise Lost(f"the sandbox hung up ({error})") from error
        header, self._lengths, self._header = self._header, None, None
        return Frame(str(header.get("kind", "")), header, body)


def number(header: dict[str, Any], name: str) -> float:
    """A finite number that is not negative. Raises ``Lost``."""
    value: Any = header.get(name)
    if type(value) not in (int, float) or not 0 <= value < 1e15:
        raise Lost(f"the sandbox sent no number for {name!r}")
    return float(value)


def code(header: dict[str, Any], name: str, most: int) -> int | None:
    """A small whole number or None. Raises ``Lost``."""
    value = header.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= most:
        raise Lost(f"the sandbox sent no code for {name!r}")
    return value
