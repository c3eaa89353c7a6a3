"""A conversation with a program, carried in the frames of its sandbox."""

import asyncio
from collections.abc import Callable
from typing import Any

from workers.sandbox.agent.frames import BODY_LIMIT
from workers.sandbox.protocol import Talk
from workers.sandbox.wire import Lost, Wire

_LINE_LIMIT = 1 << 20
_MOST_UNREAD = 8 << 20  # an honest agent stops long before
_LAST_WORDS_S = 5.0


class Conversation:
    """Runs ``talk`` beside the program. ``finished`` is called when it returns while the program is
    still listening: the program has then served its purpose."""

    def __init__(self, talk: Talk, wire: Wire, id: int, finished: Callable[[], None]) -> None:
        self._reader = asyncio.StreamReader(limit=_LINE_LIMIT)
        protocol = asyncio.StreamReaderProtocol(self._reader)
        transport = _Transport(wire, id)
        protocol.connection_made(transport)
        writer = asyncio.StreamWriter(transport, protocol, self._reader, asyncio.get_running_loop())
        self._finished = finished
        self._unread = 0
        self._ended = False
        self._task = asyncio.ensure_future(self._run(talk, writer))

    def heard(self, data: bytes) -> None:
        """Raises ``Lost`` when the agent does not hold on though it was told to."""
        if not self._ended:
            self._reader.feed_data(data)
            if len(self._reader._buffer) > _MOST_UNREAD:  # type: ignore[attr-defined]
                raise Lost("the sandbox sent more than it was allowed to")

    def hung_up(self) -> None:
        if not self._ended:
            self._ended = True
            self._reader.feed_eof()

    async def over(self) -> None:
        """After the program's end: an error of the host's own side rises."""
        self.hung_up()
        await asyncio.wait([self._task], timeout=_LAST_WORDS_S)
        await self.stop()
        if not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, talk: Talk, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(self._reader, writer)
        finally:
            if not self._ended:
                self._finished()


class _Transport(asyncio.Transport):
    """Writes become frames; a reader that is full asks the agent to hold."""

    def __init__(self, wire: Wire, id: int) -> None:
        super().__init__()
        self._wire = wire
        self._id = id
        self._closing = False

    def write(self, data: Any) -> None:
        view = memoryview(data)
        for start in range(0, len(view), BODY_LIMIT):
            self._wire.say({"op": "talk", "id": self._id}, bytes(view[start : start + BODY_LIMIT]))

    def pause_reading(self) -> None:
        self._wire.say({"op": "hold", "id": self._id})

    def resume_reading(self) -> None:
        self._wire.say({"op": "go_on", "id": self._id})

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._wire.say({"op": "hang_up", "id": self._id})

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.write_eof()

    def abort(self) -> None:
        self._closing = True
