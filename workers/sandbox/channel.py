"""A sandbox of this host from outside: a socket to its agent, a handle on its first process, and a
memory cgroup where one can be had."""

import asyncio
import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from workers.sandbox.agent.frames import LENGTHS, BrokenFrame, lengths, pack, parse
from workers.sandbox.cgroup import MemoryGroup
from workers.sandbox.protocol import SandboxUnavailable
from workers.sandbox.wire import READER_LIMIT

READY_S = 30.0
_END_S = 10.0
_FIX = "Look at the worker's log, and whether this host has memory and processes left."


class NotBuilt(SandboxUnavailable):
    """A sandbox of a backend that works otherwise; no foreign code has run. Worth another try."""


class HostChannel:
    """Satisfies ``session.Channel``."""

    def __init__(
        self,
        handle: int,
        group: MemoryGroup | None,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        release: Callable[[], None],
    ) -> None:
        self.reader, self.writer = streams
        self.handle = handle
        self._group = group
        self._release = release
        self._own_group = False
        self._oom_kills = 0
        self._closed = False

    @property
    def bounds_memory(self) -> bool:
        return self._group is not None

    @property
    def surely_lives(self) -> bool:
        return not self._closed and not _poll(self.handle, 0)

    def bound_by(self, group: MemoryGroup) -> None:
        """It has been moved into ``group``, which ends with it; the agent waits to hear so."""
        self._group = group
        self._own_group = True
        self.writer.write(pack({"op": "moved"}))

    def mark(self) -> None:
        if self._group is not None:
            self._oom_kills = self._group.oom_kills()
            self._group.forget_peak()

    def oom_kills(self) -> int:
        return self._group.oom_kills() - self._oom_kills if self._group is not None else 0

    def peak_bytes(self) -> int | None:
        return self._group.peak_bytes() if self._group is not None else None

    async def kill(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.writer.close()
        end(self.handle)
        ended = False
        try:
            ended = await _readable(self.handle, _END_S)
        finally:
            # Also where the event loop ends first: its place may not be given away before.
            _ = ended or _poll(self.handle, _END_S)
            os.close(self.handle)
            if self._own_group and self._group is not None:
                self._group.remove()
            self._release()


def end(handle: int) -> None:
    """SIGKILL to a sandbox's first process: the kernel ends all others with it."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def end_and_wait(handle: int, within_s: float = _END_S) -> None:
    """The same without an event loop; returns when nothing is left of it, and closes the handle."""
    end(handle)
    _poll(handle, within_s)
    os.close(handle)


async def meet(ends: socket.socket, group: MemoryGroup | None, release: Callable[[], None]) -> HostChannel:
    """Wait for the agent's first word on ``ends`` and take hold of it. ``release`` is called when it has
    ended. Raises ``NotBuilt``; then nothing is left."""
    handle = -1
    try:
        handle = await hello(ends)
        streams = await asyncio.open_connection(sock=ends, limit=READER_LIMIT)
        return HostChannel(handle, group, streams, release)
    except BaseException:
        ends.close()
        if handle >= 0:
            end_and_wait(handle)
        release()
        raise


def pid_of(handle: int) -> int:
    """The process behind a pidfd, as this process numbers it. Raises ``ProcessLookupError``."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pid" and int(value) > 0:
            return int(value)
    raise ProcessLookupError("the sandbox has ended")


async def hello(ends: socket.socket) -> int:
    """The pidfd that comes with the first frame. Raises ``NotBuilt``."""
    try:
        async with asyncio.timeout(READY_S):
            return await _hello(ends)
    except TimeoutError as error:
        raise NotBuilt(f"The sandbox was not ready within {READY_S:.0f} s.", _FIX) from error
    except OSError as error:
        raise NotBuilt(f"The sandbox could not be entered ({error}).", _FIX) from error


async def _hello(ends: socket.socket) -> int:
    data = b""
    handles: list[int] = []
    try:
        while True:
            try:
                part, descriptors, _, _ = socket.recv_fds(ends, 4096, 1)
            except BlockingIOError:
                await _readable(ends.fileno())
                continue
            handles += descriptors
            data += part
            if not part:
                raise NotBuilt("The sandbox ended before it was ready.", _FIX)
            if len(data) >= LENGTHS.size and len(data) >= LENGTHS.size + sum(lengths(data[: LENGTHS.size])):
                header = parse(data[LENGTHS.size :])
                break
        if header.get("kind") != "ready" or len(handles) != 1:
            raise NotBuilt(f"The sandbox could not be built: {str(header.get('text'))[:300]}.", _FIX)
        return handles.pop()
    except BrokenFrame as error:
        raise NotBuilt(f"The sandbox began with {error}.", _FIX) from error
    finally:
        for descriptor in handles:
            os.close(descriptor)


def _poll(descriptor: int, within_s: float) -> bool:
    """Not select(): that knows no descriptor beyond 1,023, and a thousand sandboxes have more."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


async def _readable(descriptor: int, within_s: float | None = None) -> bool:
    """Wait until there is something to read; False when it took too long."""
    if _poll(descriptor, 0):
        return True
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        async with asyncio.timeout(within_s):
            await ready
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True
