"""The host's end of a solution's sandbox: one request out, one checked reply back, its time counted."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from workers.collect.frames import Forged, Gone, Line, typed
from workers.sandbox.protocol import ExecResult

_DETAIL = 300


class SolutionSide:
    """The other side. Once it has ended, broken the rules or used up its time for answering, every
    request is told so."""

    def __init__(self, left_s: float) -> None:
        self.over = asyncio.Event()
        self.trouble = ""
        self.late = False
        self._left_s = left_s
        self._line: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._running: asyncio.Task[ExecResult] | None = None

    async def begun(self, running: "asyncio.Task[ExecResult]") -> None:
        """Wait until the program runs, or until it is sure that it never will."""
        self._running = running
        running.add_done_callback(lambda _: None if self._line.done() else self._line.cancel())
        await asyncio.wait([self._line])

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._line.done():
            self._line.set_result(Line(reader, writer))
        await self.over.wait()

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.trouble:
            return {"gone": self.trouble}
        began = time.monotonic()
        try:
            if self._line.cancelled():
                raise Gone("the solution's sandbox has ended")
            async with asyncio.timeout(self._left_s):
                return read_reply(await self._line.result().ask(request))
        except TimeoutError:
            self.trouble, self.late = "the solution did not answer in time", True
            self.over.set()
        except Forged as forged:
            self.trouble = str(forged)
            self.over.set()
        except Gone as gone:
            self.trouble = str(gone)
            if self._running is not None:  # it is ending: let its own end say how
                await asyncio.wait([self._running], timeout=1.0)
        finally:
            self._left_s -= time.monotonic() - began
        return {"gone": self.trouble}


def read_reply(frame: dict[str, Any]) -> dict[str, Any]:
    """Exactly one of the three shapes an honest agent sends. Raises ``Forged``."""
    if set(frame) == {"value"}:
        return {"value": typed(frame["value"])}
    if set(frame) == {"handle", "name"} and all(isinstance(part, str) for part in frame.values()):
        return frame
    names = frame.get("raised")
    if set(frame) == {"raised", "text"} and isinstance(names, list) and isinstance(frame["text"], str):
        return {"raised": [str(name)[:100] for name in names[:20]], "text": frame["text"][:_DETAIL]}
    raise Forged("an answer had no known shape")
