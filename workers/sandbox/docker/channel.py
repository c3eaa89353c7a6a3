"""A container from outside: the attached stream, what the engine and the host know of it, its end.

The stream is read from the first byte to the last: an engine whose client stops reading blocks, and
with it every call about that container. What nobody wants any more is read and thrown away.
"""

import asyncio
import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any

from workers.sandbox.cgroup import MemoryGroup
from workers.sandbox.docker.engine import ENGINE_ERRORS, Engine, remove_container
from workers.sandbox.wire import READER_LIMIT

_HEADER = struct.Struct(">BxxxI")
_STDOUT = 1
_KEPT = 4096  # of what the agent itself says in words


class AttachedStream(asyncio.StreamReaderProtocol):
    """Docker's frames (stream, length, bytes) taken apart: stdout is the agent's, stderr its last words."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.said = b""
        self._reader = reader
        self._transport: asyncio.Transport | None = None
        self._pending = bytearray()
        self._discards = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._discards:
            return
        self._pending += data
        while len(self._pending) >= _HEADER.size:
            stream, size = _HEADER.unpack_from(self._pending)
            if len(self._pending) < _HEADER.size + size:
                return
            body = bytes(self._pending[_HEADER.size : _HEADER.size + size])
            del self._pending[: _HEADER.size + size]
            if stream == _STDOUT:
                self._reader.feed_data(body)
            else:
                self.said = (self.said + body)[-_KEPT:]

    def discard(self) -> None:
        """From now on read everything and keep nothing."""
        self._discards = True
        self._pending.clear()
        with contextlib.suppress(RuntimeError, AttributeError):
            self._transport.resume_reading()  # type: ignore[union-attr]


async def attach(attached: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, AttachedStream]:
    """Streams over what ``api.attach_socket`` returned, whose connection is ours from now on."""
    connection = socket.socket(fileno=os.dup(attached.fileno()))
    if (response := getattr(attached, "_response", None)) is not None:
        response.close()
    attached.close()
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READER_LIMIT, loop=loop)
    stream = AttachedStream(reader)
    transport, _ = await loop.create_connection(lambda: stream, sock=connection)
    return reader, asyncio.StreamWriter(transport, stream, reader, loop), stream


class ContainerChannel:
    """Satisfies ``session.Channel``. ``group`` is the container's memory cgroup, where this process can
    see it (known once it runs)."""

    bounds_memory = True
    surely_lives = False  # the engine alone knows

    def __init__(
        self,
        engine: Engine,
        id: str,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter, AttachedStream],
    ) -> None:
        self.id = id
        self.reader, self.writer, self._stream = streams
        self.group: MemoryGroup | None = None
        self._engine = engine
        self._oom_kills = 0
        self._ran_out = False
        self._ending: asyncio.Future[None] | None = None

    @property
    def said(self) -> str:
        """What the agent wrote to stderr, which it does only in need."""
        return self._stream.said.decode("utf-8", "replace").strip()

    def mark(self) -> None:
        if self.group is not None:
            self._oom_kills = self.group.oom_kills()
            self.group.forget_peak()

    def oom_kills(self) -> int:
        return self.group.oom_kills() - self._oom_kills if self.group is not None else 0

    def peak_bytes(self) -> int | None:
        return self.group.peak_bytes() if self.group is not None else None

    @property
    def ran_out_of_memory(self) -> bool:
        """After the end: the kernel ended the container itself for want of memory."""
        return self._ran_out

    async def kill(self) -> None:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._stream.discard()
        if self.group is not None:
            self.group.let_go()
        self.writer.close()  # the agent reads the end of its stream, and leaves
        await self._engine.call(self._remove)

    def _remove(self) -> None:
        api = self._engine.api
        with contextlib.suppress(*ENGINE_ERRORS):
            self._ran_out = bool(api.inspect_container(self.id)["State"]["OOMKilled"])
        remove_container(api, self.id)


def memory_group(id: str, pid: int) -> MemoryGroup | None:
    """The memory cgroup of the container ``id``, whose first process the engine calls ``pid``; None
    when the engine's host is not this one or its groups cannot be read."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if id not in path:
                continue
            if "memory" in controllers.split(","):
                group = MemoryGroup("v1", Path("/sys/fs/cgroup/memory") / path.lstrip("/"))
                return group if (group.path / "memory.oom_control").exists() else None
            if number == "0" and not controllers:
                group = MemoryGroup("v2", Path("/sys/fs/cgroup") / path.lstrip("/"))
                if (group.path / "memory.events").exists():
                    return group
    return None
