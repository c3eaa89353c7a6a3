"""Content handed to a sandbox by descriptor: it never touches a file system of the host."""

import contextlib
import fcntl
import os
from types import TracebackType
from typing import Self

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class Descriptors:
    """Memory files, closed together on exit. ``numbers`` are those that bwrap itself reads."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._all: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._all:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def memory(self, content: bytes) -> int:
        """A readable descriptor over ``content`` for bwrap."""
        descriptor = self.sealed(content)
        self.numbers.append(descriptor)
        return descriptor

    def sealed(self, content: bytes) -> int:
        """The same for the program itself: sealed, so that it holds no memory beyond ``content``."""
        descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._all.append(descriptor)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor
