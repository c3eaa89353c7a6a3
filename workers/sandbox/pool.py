"""Sandboxes kept ready, handed out once each, never more than the host can hold.

A sandbox serves one caller and is then ended, whatever became of it, so that the pool is at full
strength again after any abuse. Every place is accounted for: one whose owner died without closing
is taken back. Who waits is served first come first served (``pool_line.py``).

Belongs to one event loop; ``worker_pool.py`` has the one that a whole process shares.
"""

import asyncio
import contextlib
import itertools
import logging
import time
import weakref
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from workers.sandbox.channel import NotBuilt
from workers.sandbox.lease import Lease
from workers.sandbox.pool_line import Key, Line, PoolFull, PoolTimeout, Shelf
from workers.sandbox.pool_stats import Meter, PoolStats
from workers.sandbox.protocol import (
    Backend,
    Capabilities,
    ExecResult,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    Talk,
)

__all__ = ["PoolFull", "PoolStats", "PoolTimeout", "SandboxPool"]

logger = logging.getLogger(__name__)

CHECK_S = 2.0
_ATTEMPTS = 3
_BEAT_S = 5.0
_REFILL_S = 0.01

AnyTask = asyncio.Task[Any]


@dataclass(eq=False)
class _Taken:
    """A sandbox in use. It must not refer to its lease, whose end it is there to notice."""

    sandbox: Sandbox
    since: float
    home: asyncio.AbstractEventLoop
    owner: "weakref.ref[AnyTask] | None"
    ending: asyncio.Task[None] | None = None


class SandboxPool:
    """``min_ready`` are parked for each of the ``max_specs`` keys (specification and snapshot) used
    last; ``max_live`` counts all there are: in use, parked, in the making, being ended. Each is asked
    whether it answers before it is handed out. ``max_age_s`` ends what somebody forgot; parked ones
    that nobody asked for in ``max_idle_s`` are ended. Satisfies ``Backend`` too, so that whoever takes
    one can take a pool."""

    def __init__(
        self,
        backend: Backend,
        *,
        min_ready: int = 2,
        max_live: int = 64,
        max_queue: int = 1024,
        max_specs: int = 8,
        max_age_s: float = 3600.0,
        max_idle_s: float = 300.0,
        deadline_s: float = 60.0,
    ) -> None:
        if max_live < 1 or max_specs < 1 or min_ready < 0 or max_queue < 0:
            raise ValueError("a pool needs room for one sandbox at least")
        self._backend = backend
        self._min_ready, self._max_live = min_ready, max_live
        self._max_age_s, self._max_idle_s, self._deadline_s = max_age_s, max_idle_s, deadline_s
        self._line = Line(max_live=max_live, max_queue=max_queue, max_specs=max_specs, give_up=self._give_up)
        self._numbers = itertools.count()
        self._leased: dict[int, _Taken] = {}
        self._meter = Meter(max_live)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def interpreter(self) -> tuple[str, ...]:
        return self._backend.interpreter

    def probe(self) -> Capabilities:
        return self._backend.probe()

    async def reap(self, owner: str = "") -> int:
        return await self._backend.reap(owner)

    @asynccontextmanager
    async def acquire(
        self, spec: SandboxSpec, *, base: Snapshot | None = None, deadline_s: float | None = None
    ) -> AsyncIterator[Sandbox]:
        """A sandbox for the time of the block. It is the running task's: when that dies without leaving
        the block, the sandbox is taken back. Raises ``PoolFull``, ``PoolTimeout`` and what the
        backend's ``create`` raises."""
        sandbox = await self.create(spec, base, deadline_s=deadline_s, owner=asyncio.current_task())
        try:
            yield sandbox
        finally:
            await sandbox.close()

    async def create(
        self,
        spec: SandboxSpec,
        base: Snapshot | None = None,
        *,
        deadline_s: float | None = None,
        owner: AnyTask | None = None,
        home: asyncio.AbstractEventLoop | None = None,
    ) -> Lease:
        """The same until ``close`` (which does not wait for its end), for callers that keep it longer than
        a block. Without ``owner`` it is taken back when nobody refers to it any more, when the loop
        ``home`` (this one by default) has been closed, or after ``max_age_s``."""
        self._start()
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._deadline_s if deadline_s is None else deadline_s):
                sandbox = await self._healthy(Key(spec, base.id if base else ""), base)
        except TimeoutError:
            self._meter.refused += 1
            raise PoolTimeout(
                f"No sandbox could be had within {time.monotonic() - began:.1f} s "
                f"({self._line.live} of {self._max_live} are taken).",
                "Try again later or raise FLYWHEEL_SANDBOX_MAX_LIVE.",
            ) from None
        except PoolFull:
            self._meter.refused += 1
            raise
        if self._closed:
            await self._end(sandbox)
            raise _closed()
        self._meter.waited(time.monotonic() - began)
        return self._lend(sandbox, owner, home or asyncio.get_running_loop())

    async def run(
        self,
        spec: SandboxSpec,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
        talk: Talk | None = None,
    ) -> ExecResult:
        """A fresh sandbox for one program. That the pool is busy or a sandbox could not be built is an
        ``infra_error``: nothing ran, and it may go better next time."""
        try:
            async with self.acquire(spec) as sandbox:
                if files:
                    await sandbox.put(files)
                return await sandbox.exec(argv, stdin=stdin, timeout_s=timeout_s, talk=talk)
        except (PoolFull, PoolTimeout, NotBuilt) as error:
            return ExecResult("infra_error", detail=str(error))
        except SandboxGone as gone:
            return ExecResult("signal" if gone.after_code else "infra_error", detail=gone.reason)

    def stats(self) -> PoolStats:
        return self._meter.stats(
            ready=self._line.parked,
            live=self._line.live,
            leased=self._in_use,
            waiting=self._line.waiting,
        )

    async def sweep(self) -> int:
        """End what nobody will close: sandboxes of dead tasks and closed loops, those past their age,
        parked ones that nobody asks for. The pool does it every few seconds; returns how many."""
        leaked = [number for number, taken in self._leased.items() if self._abandoned(taken)]
        self._meter.leaked += len(leaked)
        for ending in [self._give_back(number) for number in leaked]:
            if ending is not None:
                await asyncio.shield(ending)
        return len(leaked) + self._line.clear_unused(self._max_idle_s)

    async def close(self) -> None:
        """End every sandbox, in use or not; whoever waits is told. Harmless twice."""
        self._closed = True
        if self._beat is not None:
            self._beat.cancel()
        self._line.close(_closed())
        for number in list(self._leased):
            self._give_back(number)
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _healthy(self, key: Key, base: Snapshot | None) -> Sandbox:
        """A sandbox that has just answered; sick ones are ended and replaced in the same place."""
        sandbox = await self._line.take(key, base)
        trouble = ""
        try:
            for _ in range(_ATTEMPTS):
                sandbox = sandbox or await self._make(key, base)
                trouble = await self._trouble(sandbox)
                if not trouble:
                    self._line.used(key)
                    self._refill_soon()
                    return sandbox
                self._meter.replaced += 1
                sick, sandbox = sandbox, None
                await asyncio.shield(self._spawn(_close(sick)))
            raise SandboxUnavailable(
                f"{_ATTEMPTS} sandboxes in a row did not answer ({trouble}).", "See the worker's log."
            )
        except BaseException:
            if sandbox is None:
                self._line.free()
            else:
                self._spawn(self._end(sandbox))
            raise

    async def _trouble(self, sandbox: Sandbox) -> str:
        try:
            async with asyncio.timeout(CHECK_S):
                await sandbox.ping()
        except Exception as error:
            return str(error) or type(error).__name__
        return ""

    async def _make(self, key: Key, base: Snapshot | None) -> Sandbox:
        sandbox = await self._backend.create(key.spec, base)
        self._meter.created += 1
        return sandbox

    def _lend(self, sandbox: Sandbox, owner: AnyTask | None, home: asyncio.AbstractEventLoop) -> Lease:
        number = next(self._numbers)
        self._leased[number] = _Taken(
            sandbox, time.monotonic(), home, weakref.ref(owner) if owner is not None else None
        )
        self._meter.move(self._in_use)
        return Lease(sandbox, on_close=lambda: self._close_lease(number), on_lost=lambda: self._lost(number))

    def _close_lease(self, number: int) -> None:
        self._give_back(number)

    def _give_back(self, number: int) -> asyncio.Task[None] | None:
        """Begin to end the sandbox; its place is free when it is gone."""
        taken = self._leased.get(number)
        if taken is not None and taken.ending is None:
            taken.ending = self._spawn(self._end_lease(number, taken))
            self._meter.move(self._in_use)
        return taken.ending if taken is not None else None

    async def _end_lease(self, number: int, taken: _Taken) -> None:
        await _close(taken.sandbox)
        del self._leased[number]
        self._line.free()
        self._refill()

    async def _end(self, sandbox: Sandbox) -> None:
        await _close(sandbox)
        self._line.free()

    def _give_up(self, sandbox: Sandbox) -> None:
        async def end() -> None:
            await _close(sandbox)
            self._line.dropped()

        self._spawn(end())

    def _lost(self, number: int) -> None:
        def take_back() -> None:
            if number in self._leased and not self._closed:
                self._meter.leaked += 1
                self._give_back(number)

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(take_back)

    @property
    def _in_use(self) -> int:
        return sum(taken.ending is None for taken in self._leased.values())

    def _abandoned(self, taken: _Taken) -> bool:
        if taken.ending is not None:
            return False
        owner = taken.owner() if taken.owner is not None else None
        dead = taken.owner is not None and (owner is None or owner.done())
        return dead or taken.home.is_closed() or time.monotonic() - taken.since > self._max_age_s

    def _refill_soon(self) -> None:
        """Not at once: whoever has just been served would share the processors with it."""
        asyncio.get_running_loop().call_later(_REFILL_S, self._refill)

    def _refill(self) -> None:
        """Make what is missing, as long as nobody waits for a place. A snapshot must have been asked
        for twice: most are used once."""
        for key, shelf in reversed(self._line.shelves.items()):
            if shelf.uses < (2 if shelf.base else 1):
                continue
            while (
                not self._closed
                and self._line.has_room
                and len(shelf.parked) + shelf.making < self._min_ready
            ):
                self._line.reserve()
                shelf.making += 1
                self._spawn(self._park(key, shelf))

    async def _park(self, key: Key, shelf: Shelf) -> None:
        try:
            sandbox = await self._make(key, shelf.base)
        except Exception as error:  # the next caller makes its own and hears the reason
            logger.warning("no sandbox could be made ready: %s", error)
            shelf.uses = 0
            self._line.free()
            return
        finally:
            shelf.making -= 1
        if self._closed or not self._line.park(key, shelf, sandbox):
            await self._end(sandbox)

    def _start(self) -> None:
        if self._closed:
            raise _closed()
        running = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = running
            self._beat = self._loop.create_task(self._sweep_for_ever())
        elif self._loop is not running:
            raise RuntimeError("this pool belongs to another event loop; use worker_pool()")

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            with contextlib.suppress(Exception):
                await self.sweep()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _close(sandbox: Sandbox) -> None:
    try:
        await sandbox.close()
    except Exception as error:  # nobody can do more here; the backend's reaper ends what is left
        logger.warning("a sandbox could not be ended in order: %s", error)


def _closed() -> SandboxUnavailable:
    return SandboxUnavailable("The pool of sandboxes is closed.", "Start the worker again.")
