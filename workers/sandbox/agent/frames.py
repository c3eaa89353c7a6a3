"""Frames on the stream between host and agent: two lengths, a JSON header, a binary body.

Both sides check the lengths before they read on, so that neither can be made to hold more than one
frame. The agent's side blocks; the host's is ``workers/sandbox/wire.py``.
"""

from __future__ import annotations

import json
import os
import select
import struct

from . import sockets

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LENGTHS = struct.Struct("!II")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
HEADER_LIMIT = 64 * 1024
BODY_LIMIT = 256 * 1024
_MOMENT_MS = 40  # whoever has a sandbox for one program only has ended it by then


class BrokenFrame(ValueError):
    """Lengths or a header that no honest side sends."""


def encode(value: Any) -> bytes:
    """JSON without spaces. This and ``decode`` walk through less code than ``json`` does, which counts in
    a process that copies each page that it touches."""
    return "".join(_pieces(value, 0)).encode()


def decode(data: bytes) -> Any:
    """One JSON value with nothing around it. Raises ``ValueError``."""
    text = str(data, "utf-8")
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def _refuse(value: object) -> None:
    raise TypeError(f"no JSON: {type(value).__name__}")


_pieces = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _refuse, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False
)


def pack(header: dict[str, Any], body: bytes | memoryview = b"") -> bytes:
    """One frame. ``header`` must be small; ``body`` at most ``BODY_LIMIT`` bytes."""
    text = encode(header)
    if len(text) > HEADER_LIMIT or len(body) > BODY_LIMIT:
        raise ValueError("too large for one frame")
    return b"".join((LENGTHS.pack(len(text), len(body)), text, body))


def lengths(data: bytes) -> tuple[int, int]:
    """Raises ``BrokenFrame``."""
    header, body = LENGTHS.unpack(data)
    if not 2 <= header <= HEADER_LIMIT or body > BODY_LIMIT:
        raise BrokenFrame(f"a frame of {header} and {body} bytes")
    return header, body


def parse(data: bytes) -> dict[str, Any]:
    """A header. Raises ``BrokenFrame``."""
    try:
        header = decode(data)
    except (ValueError, RecursionError):
        raise BrokenFrame("a header is not JSON") from None
    if type(header) is not dict:
        raise BrokenFrame("a header is not an object")
    return header


_READY = pack({"id": 0, "kind": "ready"})


def say_hello(write: int, *, handle: bool) -> None:
    """The first frame: ready. With ``handle`` a pidfd of this process goes along (unix sockets only)."""
    if handle:
        own = os.pidfd_open(os.getpid())
        sockets.send(write, _READY, own)
        os.close(own)
        return
    view = memoryview(_READY)
    while view:
        view = view[os.write(write, view) :]


class Stream:
    """The agent's end. A host that is gone, or says nonsense, ends the process, and with it all."""

    def __init__(self, read: int, write: int) -> None:
        self.read_fd = read
        self.write_fd = write
        self._pending = bytearray()
        self._poll = select.poll()
        self._poll.register(read, select.POLLIN)

    def send(self, header: dict[str, Any], body: bytes | memoryview = b"") -> None:
        view = memoryview(pack(header, body))
        try:
            while view:
                view = view[os.write(self.write_fd, view) :]
        except OSError:
            os._exit(0)

    def receive(self, idle: Callable[[], None] | None = None) -> tuple[dict[str, Any], bytes]:
        """The next frame; waits for it. ``idle`` is called once when nothing comes for a moment."""
        while True:
            frame = self.take()
            if frame is not None:
                return frame
            if idle is not None and not self._poll.poll(_MOMENT_MS):
                idle()
                idle = None
            self.fill()

    def fill(self) -> None:
        """Read what is there; waits for something."""
        try:
            data = os.read(self.read_fd, 1 << 18)
        except OSError:
            data = b""
        if not data:
            os._exit(0)
        self._pending += data

    def take(self) -> tuple[dict[str, Any], bytes] | None:
        """A frame that has arrived whole, or None."""
        pending = self._pending
        if len(pending) < LENGTHS.size:
            return None
        try:
            header, body = lengths(bytes(pending[: LENGTHS.size]))
            start, end = LENGTHS.size + header, LENGTHS.size + header + body
            if len(pending) < end:
                return None
            frame = parse(bytes(pending[LENGTHS.size : start])), bytes(pending[start:end])
        except BrokenFrame:
            os._exit(1)
        del pending[:end]
        return frame
