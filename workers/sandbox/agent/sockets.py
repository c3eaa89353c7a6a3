"""Unix sockets without the module ``socket``, whose enumerations would make every fork dearer."""

from __future__ import annotations

import _socket  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INT = 4
_ROOM = _socket.CMSG_LEN(_INT)


def of(descriptor: int) -> Any:
    """The socket that ``descriptor`` is; it is closed with the object, unless detached from it."""
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)


def pair() -> tuple[int, int]:
    """The descriptors of a connected pair, closed on exec."""
    one, other = _socket.socketpair()
    return one.detach(), other.detach()


def hang_up(descriptor: int) -> None:
    """The other end reads the end; this one may still read."""
    socket = of(descriptor)
    try:
        socket.shutdown(_socket.SHUT_WR)
    finally:
        socket.detach()


def send(descriptor: int, data: bytes, handle: int) -> None:
    """One message with a copy of the descriptor ``handle``."""
    socket = of(descriptor)
    try:
        socket.sendmsg((data,), ((_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handle.to_bytes(_INT, "little")),))
    finally:
        socket.detach()


def receive(socket: Any, most: int) -> tuple[bytes, int]:
    """One message and the descriptor that came with it; -1 where none did."""
    data, ancillary, _, _ = socket.recvmsg(most, _ROOM)
    for _, kind, packed in ancillary:
        if kind == _socket.SCM_RIGHTS:
            return data, int.from_bytes(packed[:_INT], "little")
    return data, -1
