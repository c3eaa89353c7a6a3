"""The places of a pool: what is parked in them, and the line of those who wait for one.

One rule: the head of the line is served first. It gets a parked sandbox of its key, or a free
place to make one in; where all places are taken, the parked sandbox of the key that was used
longest ago gives way. Leaves out how sandboxes are made and ended.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from workers.sandbox.protocol import Sandbox, SandboxSpec, SandboxUnavailable, Snapshot


class PoolFull(SandboxUnavailable):
    """So many wait already that another would only make all late."""


class PoolTimeout(SandboxUnavailable):
    """No sandbox could be had within the deadline."""


class Key(NamedTuple):
    """What a parked sandbox must match."""

    spec: SandboxSpec
    base: str


@dataclass(eq=False)
class Shelf:
    """The parked sandboxes of one key, oldest first, and how many are being made for it."""

    base: Snapshot | None
    parked: deque[Sandbox] = field(default_factory=deque)
    making: int = 0
    uses: int = 0
    used_at: float = 0.0


@dataclass(eq=False)
class _Waiter:
    """``granted`` becomes a parked sandbox, or None for a place to make one in."""

    key: Key
    granted: asyncio.Future[Sandbox | None]


class Line:
    """``live`` places are taken: by sandboxes parked, in use, in the making or being ended.
    ``give_up`` must end a parked sandbox and then call ``free``."""

    def __init__(
        self, *, max_live: int, max_queue: int, max_specs: int, give_up: Callable[[Sandbox], None]
    ) -> None:
        self.live = 0
        self.shelves: OrderedDict[Key, Shelf] = OrderedDict()  # the one used last stands last
        self._max_live, self._max_queue, self._max_specs = max_live, max_queue, max_specs
        self._give_up = give_up
        self._giving_up = 0
        self._waiters: deque[_Waiter] = deque()

    @property
    def waiting(self) -> int:
        return sum(not waiter.granted.done() for waiter in self._waiters)

    @property
    def parked(self) -> int:
        return sum(len(shelf.parked) for shelf in self.shelves.values())

    @property
    def has_room(self) -> bool:
        """Whether one more could be made without keeping anybody waiting."""
        return not self.waiting and self.live < self._max_live

    async def take(self, key: Key, base: Snapshot | None) -> Sandbox | None:
        """A parked sandbox of ``key`` with its place, or None and a place. Raises ``PoolFull``."""
        self._shelve(key, base)
        waiter = _Waiter(key, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._serve()
        if not waiter.granted.done() and self.waiting > self._max_queue:
            self._waiters.remove(waiter)
            raise PoolFull(
                f"{self._max_queue} callers wait for a sandbox already.",
                "Ask for fewer at once or raise FLYWHEEL_SANDBOX_MAX_LIVE.",
            )
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            granted = waiter.granted
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self._hand_back(granted.result())  # it came in the very moment in which the caller left
            self._serve()
            raise

    def used(self, key: Key) -> None:
        """A sandbox of ``key`` was had: it is worth keeping some ready."""
        if (shelf := self.shelves.get(key)) is not None:
            shelf.uses += 1

    def reserve(self) -> None:
        """Take a place without standing in line; only where ``has_room``."""
        self.live += 1

    def park(self, key: Key, shelf: Shelf, sandbox: Sandbox) -> bool:
        """Put a new sandbox, with its place, on the shelf it was made for; False if that is gone."""
        if self.shelves.get(key) is not shelf:
            return False
        shelf.parked.append(sandbox)
        self._serve()
        return True

    def free(self) -> None:
        """A place is free again."""
        self.live -= 1
        self._serve()

    def clear_unused(self, idle_s: float) -> int:
        """Give up what is parked for keys that nobody asked for in that time; how many."""
        before = time.monotonic() - idle_s
        return sum(self._clear(key) for key in [k for k, s in self.shelves.items() if s.used_at < before])

    def close(self, why: Exception) -> None:
        """Send everybody away and give up all that is parked."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.granted.done():
                waiter.granted.set_exception(why)
        for key in list(self.shelves):
            self._clear(key)

    def _serve(self) -> None:
        while self._waiters:
            waiter = self._waiters[0]
            if not waiter.granted.done():
                shelf = self.shelves.get(waiter.key)
                if shelf is not None and shelf.parked:
                    waiter.granted.set_result(shelf.parked.popleft())
                elif self.live < self._max_live:
                    self.live += 1
                    waiter.granted.set_result(None)
                else:
                    self._make_room()
                    return
            self._waiters.popleft()

    def _make_room(self) -> None:
        for shelf in self.shelves.values():
            while shelf.parked and self._giving_up < self.waiting:
                self._drop(shelf.parked.popleft())

    def _shelve(self, key: Key, base: Snapshot | None) -> None:
        shelf = self.shelves.setdefault(key, Shelf(base))
        shelf.used_at = time.monotonic()
        self.shelves.move_to_end(key)
        while len(self.shelves) > self._max_specs:
            self._clear(next(iter(self.shelves)))

    def _clear(self, key: Key) -> int:
        parked = self.shelves.pop(key).parked
        for sandbox in parked:
            self._drop(sandbox)
        return len(parked)

    def _drop(self, sandbox: Sandbox) -> None:
        self._giving_up += 1
        self._give_up(sandbox)

    def dropped(self) -> None:
        """What ``give_up`` was asked for is done."""
        self._giving_up -= 1
        self.free()

    def _hand_back(self, granted: Sandbox | None) -> None:
        if granted is None:
            self.live -= 1
        else:
            self._drop(granted)
