"""A conversation with a program, held in another event loop than the one that runs the program.

Bytes cross through a pair of sockets: the kernel keeps order, holds back whoever is too fast, and
needs no lock.
"""

import asyncio
import socket
from contextlib import suppress

from workers.sandbox.protocol import Talk

LINE_LIMIT = 1 << 20
_CHUNK = 1 << 16


def at_home(talk: Talk, home: asyncio.AbstractEventLoop) -> Talk:
    """``talk``, to be run in ``home`` by whichever loop awaits the result."""

    async def bridged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours, theirs = socket.socketpair()
        from_home, to_home = await asyncio.open_connection(sock=ours)
        spoken = asyncio.run_coroutine_threadsafe(_speak(talk, theirs), home)
        pumps = [asyncio.create_task(_pump(reader, to_home)), asyncio.create_task(_pump(from_home, writer))]
        try:
            await asyncio.wrap_future(spoken)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)
            to_home.close()

    return bridged


async def _speak(talk: Talk, ends: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=ends, limit=LINE_LIMIT)
    try:
        await talk(reader, writer)
    finally:
        writer.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until the source ends; the target then hears that, and may still speak."""
    with suppress(ConnectionError, RuntimeError):  # whoever hung up is heard of by the other pump
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
