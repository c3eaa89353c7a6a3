"""Keeping a program's output with bounded memory: the start and the end are kept, all is counted."""

from collections import deque

from workers.sandbox.protocol import Captured


class Capture:
    """One stream."""

    def __init__(self, *, cap: int, keep: int) -> None:
        self.total = 0
        self._cap = cap
        self._head = bytearray()
        self._head_room = keep - keep // 2
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._tail_room = keep // 2

    @property
    def over(self) -> bool:
        return self.total > self._cap

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def result(self) -> Captured:
        tail = b"".join(self._tail)
        return Captured(bytes(self._head), tail[len(tail) - min(len(tail), self._tail_room) :], self.total)
