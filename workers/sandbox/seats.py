"""Memory cgroups for the sandboxes of one zygote, with a process in each that gives birth there.

Moving a live process into a cgroup waits for all processors (a grace period of RCU, milliseconds);
being born in one costs nothing. So a copy of the zygote is moved once and stays: its seat serves one
sandbox after another. Beyond a few at once each sandbox gets a group for itself and is moved.
"""

import asyncio
import os
import socket
from dataclasses import dataclass
from functools import partial

from workers.sandbox.cgroup import GroupUnavailable, Hierarchy, MemoryGroup
from workers.sandbox.channel import HostChannel, NotBuilt, end, end_and_wait, hello, meet, pid_of
from workers.sandbox.zygote import Zygote, ZygoteFailed, spawn

_MOST = 16
_FIX = "Look at the worker's log, and whether this host has memory and processes left."


@dataclass
class _Seat:
    control: socket.socket
    handle: int
    group: MemoryGroup
    memory_bytes: int

    def clear(self) -> None:
        """End the copy and remove the group."""
        self.control.close()
        end_and_wait(self.handle)
        self.group.remove()


class Seats:
    """Used by one event loop after another."""

    def __init__(self, zygote: Zygote, hierarchy: Hierarchy | None) -> None:
        self.zygote = zygote
        self._hierarchy = hierarchy
        self._free: list[_Seat] = []
        self._count = 0
        self._closed = False

    async def create(self, size: int, memory_bytes: int) -> HostChannel:
        """A sandbox with folders of ``size`` bytes each, and its total memory bounded where that can be
        done. Raises ``NotBuilt`` and ``ZygoteFailed``."""
        if self._hierarchy is None:
            return await meet(self.zygote.spawn(size), None, _nothing)
        seat = self._take(memory_bytes)
        if seat is None and self._count >= _MOST:
            return await self._moved(self._hierarchy, size, memory_bytes)
        if seat is None:
            seat = await self._new_seat(self._hierarchy, memory_bytes)
        try:
            ends = spawn(seat.control, size)
        except ZygoteFailed:
            self._drop(seat)
            raise
        return await meet(ends, seat.group, partial(self._give_back, seat))

    def close(self) -> None:
        """End the zygote, and with it all that it made."""
        self._closed = True
        if self.zygote.owner == os.getpid():
            while self._free:
                self._drop(self._free.pop())
        self.zygote.close()

    def _take(self, memory_bytes: int) -> _Seat | None:
        while self._free:
            seat = self._free.pop()
            try:
                if seat.memory_bytes != memory_bytes:
                    seat.group.limit(memory_bytes)
                    seat.memory_bytes = memory_bytes
            except GroupUnavailable:  # more than that is left in it
                self._drop(seat)
            else:
                return seat
        return None

    def _give_back(self, seat: _Seat) -> None:
        if self.zygote.owner != os.getpid():
            return
        if self._closed or not self.zygote.alive:
            self._drop(seat)
        else:
            self._free.append(seat)

    def _drop(self, seat: _Seat) -> None:
        self._count -= 1
        seat.clear()

    async def _new_seat(self, hierarchy: Hierarchy, memory_bytes: int) -> _Seat:
        self._count += 1
        control = self.zygote.copy()
        handle = -1
        try:
            handle = await hello(control)
            group = await joined(hierarchy, memory_bytes, handle)
        except BaseException:
            self._count -= 1
            control.close()
            if handle >= 0:
                end_and_wait(handle)
            raise
        control.setblocking(True)
        group.keep_open()
        return _Seat(control, handle, group, memory_bytes)

    async def _moved(self, hierarchy: Hierarchy, size: int, memory_bytes: int) -> HostChannel:
        channel = await meet(self.zygote.spawn(size, moves=True), None, _nothing)
        try:
            channel.bound_by(await joined(hierarchy, memory_bytes, channel.handle))
        except BaseException:
            await channel.kill()
            raise
        return channel


async def joined(hierarchy: Hierarchy, memory_bytes: int, handle: int) -> MemoryGroup:
    """A new group that holds the process behind ``handle``; on a thread, as it may wait. Raises
    ``NotBuilt``; then there is none."""
    joining = asyncio.ensure_future(asyncio.to_thread(_join, hierarchy, memory_bytes, handle))
    try:
        return await asyncio.shield(joining)
    except OSError as error:
        raise NotBuilt(f"The sandbox could not be bounded ({error}).", _FIX) from error
    except asyncio.CancelledError:
        await asyncio.wait([joining])
        if joining.exception() is None:
            end(handle)
            joining.result().remove()
        raise


def _join(hierarchy: Hierarchy, memory_bytes: int, handle: int) -> MemoryGroup:
    group = hierarchy.create(memory_bytes)
    try:
        group.add(pid_of(handle))
    except OSError:
        group.remove()
        raise
    return group


def _nothing() -> None:
    """There is nothing to give back."""
