"""The thread that computes: the event loop stays free to answer, whatever the model does."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workers.engine.batching import Batcher, Delta, Request

log = logging.getLogger(__name__)


class EngineStopped(RuntimeError):
    """The computing thread is gone; the process should be started anew."""


@dataclass(eq=False)
class Ticket:
    """Where the deltas of one HTTP request's sequences arrive; None means the engine died."""

    requests: list[Request]
    deltas: asyncio.Queue[Delta | None] = field(default_factory=asyncio.Queue)


class EngineLoop:
    """Owns the batcher's thread. ``submit`` and ``cancel`` are called on the event loop."""

    def __init__(self, batcher: Batcher, on_failure: Callable[[], None]) -> None:
        self.batcher = batcher
        self.failed = False
        self._on_failure = on_failure
        self._incoming: list[Request] = []
        self._tickets: dict[Request, Ticket] = {}
        self._wake = threading.Condition()
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def submit(self, requests: list[Request]) -> Ticket:
        if self.failed:
            raise EngineStopped("the engine has stopped")
        ticket = Ticket(requests)
        self._tickets |= dict.fromkeys(requests, ticket)
        for request in requests:
            request.submitted_s = time.monotonic()
        with self._wake:
            self._incoming += requests
            self._wake.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Stop what has not finished. Harmless when all of it has."""
        for request in ticket.requests:
            if self._tickets.pop(request, None) is not None and not request.finish_reason:
                request.cancelled = True
                self.batcher.counters.finished["abort"] += 1

    @property
    def waiting(self) -> int:
        return self.batcher.waiting + len(self._incoming)

    def _run(self) -> None:
        assert self._loop is not None
        try:
            while self._take_in():
                started = time.monotonic()
                deltas = self.batcher.step()
                self._count(deltas, started, time.monotonic())
                shown = [delta for delta in deltas if delta.finish_reason or delta.request.streaming]
                if shown:
                    self._loop.call_soon_threadsafe(self._deliver, shown)
        except Exception:
            log.exception("engine thread failed")
            self.failed = True
            self._loop.call_soon_threadsafe(self._fail)

    def _count(self, deltas: list[Delta], started: float, ended: float) -> None:
        self.batcher.counters.busy_s += ended - started
        for delta in deltas:
            if len(delta.request.drawn) == len(delta.drawn):
                self.batcher.counters.count_first_token(ended - delta.request.submitted_s)

    def _take_in(self) -> bool:
        """Wait for work and hand it to the batcher; False when the thread should end."""
        with self._wake:
            while not (self._stopping or self._incoming or self.batcher.busy):
                self._wake.wait()
            incoming, self._incoming = self._incoming, []
            if self._stopping:
                return False
        for request in incoming:
            self.batcher.add(request)
        return True

    def _deliver(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            ticket = self._tickets.get(delta.request)
            if ticket is None:
                continue
            if delta.finish_reason:
                del self._tickets[delta.request]
            ticket.deltas.put_nowait(delta)

    def _fail(self) -> None:
        for ticket in set(self._tickets.values()):
            ticket.deltas.put_nowait(None)
        self._tickets.clear()
        self._on_failure()
