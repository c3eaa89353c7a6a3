"""Docker's stream taken apart: whatever the engine cuts, the agent's bytes come out whole."""

import asyncio
import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from workers.sandbox.docker.channel import AttachedStream

FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=20)


class Transport(asyncio.Transport):
    """Remembers whether the reader asked it to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def framed(frames: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack(">BxxxI", stream, len(body)) + body for stream, body in frames)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 6000), max_size=30))
def test_bytes_come_out_whole_however_the_stream_is_cut(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    async def read() -> tuple[bytes, bytes]:
        reader = asyncio.StreamReader()
        stream = AttachedStream(reader)
        stream.connection_made(Transport())
        data = framed(frames)
        places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
        for start, end in itertools.pairwise(places):
            stream.data_received(data[start:end])
        stream.connection_lost(None)
        return await reader.read(), stream.said

    spoken, said = asyncio.run(read())

    assert spoken == b"".join(body for stream, body in frames if stream == 1)
    assert said == b"".join(body for stream, body in frames if stream == 2)[-4096:]


async def test_a_reader_that_is_full_makes_the_stream_wait() -> None:
    stream, transport = AttachedStream(asyncio.StreamReader(limit=64)), Transport()
    stream.connection_made(transport)

    stream.data_received(framed([(1, b"x" * 1000)]))

    assert transport.paused


async def test_what_nobody_wants_is_read_on_and_thrown_away() -> None:
    reader = asyncio.StreamReader(limit=64)
    stream, transport = AttachedStream(reader), Transport()
    stream.connection_made(transport)
    stream.data_received(framed([(1, b"x" * 1000)]))

    stream.discard()
    stream.data_received(framed([(1, b"y" * 1000)]))

    assert not transport.paused
    stream.connection_lost(None)
    assert b"y" not in await reader.read()
