"""Answering the host's requests, one after another, for as long as the host is there.

A request is a header and, in as many frames as needed, ``size`` bytes. Answers are ``data`` frames
and one last: ``done``, or ``error`` with ``error`` = unsafe, missing, value or broken.
"""

from __future__ import annotations

import json
import os

from . import kernel
from .archives import unpack
from .files import Unsafe, Workspace, clear
from .frames import BODY_LIMIT, Stream
from .programs import Programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_FOLDERS = ("/workspace", "/tmp", "/dev/shm")
_INODE_SHARE = 1024  # one inode for so many bytes
_ROWS, _LETTERS = 200, 8192  # of one line of a list


class _Body:
    """The bytes that follow a request; whatever is not read is skipped."""

    def __init__(self, stream: Stream, size: int, first: bytes) -> None:
        self._stream = stream
        self.left = size - len(first)
        self._pending = first

    def read(self, size: int) -> bytes:
        return b"".join(self.chunks(size))

    def chunks(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._pending:
                _, self._pending = self._stream.receive()
                self.left -= len(self._pending)
            chunk, self._pending = self._pending[:size], self._pending[size:]
            size -= len(chunk)
            yield chunk

    def rest(self) -> bytes:
        return self.read(self.left + len(self._pending))

    def skip(self) -> None:
        for _ in self.chunks(self.left + len(self._pending)):
            pass


class Agent:
    """``mounts`` says that the small folders are ours to mount. Made before anything is forked: in a fork
    each object that is made anew costs more."""

    def __init__(self, stream: Stream, programs: Programs, root: str, *, mounts: bool) -> None:
        self._stream = stream
        self._mounts = mounts
        self._bytes = 0
        self._root = root
        self._workspace = Workspace(self._root)
        self._programs = programs
        self._operations: dict[str, Callable[[dict[str, Any], _Body], None]] = {
            "ping": self._ping,
            "exec": self._exec,
            "put": self._put,
            "put_archive": self._put_archive,
            "get": self._get,
            "list": self._list,
            "fetch": self._fetch,
            "apply": self._apply,
            "reset": self._reset,
        }

    def serve(self, bytes: int, *, moves: bool) -> None:
        """Returns never; in a program that was forked it raises ``Become``. Each small folder holds
        ``bytes``. ``moves``: the host will move this process into a memory cgroup and then speak; nothing
        may be forked before that. Such sandboxes are many, so that none of them has a process waiting
        either."""
        self._bytes = bytes
        idle = None if moves else self._programs.prepare
        if moves:
            self._stream.receive()
        else:
            self._programs.prepare()
        while True:
            header, first = self._stream.receive(idle)
            operation = self._operations.get(str(header.get("op")))
            if operation is None:
                continue  # a word to a program that has ended meanwhile
            body = _Body(self._stream, int(header.get("size", 0)), first)
            try:
                operation(header, body)
            except Unsafe as error:
                self._fail(header, body, "unsafe", error)
            except FileNotFoundError as error:
                self._fail(header, body, "missing", error)
            except (ValueError, OSError) as error:
                self._fail(header, body, "value", error)
            except Exception as error:
                self._fail(header, body, "broken", error)

    def _fail(self, header: dict[str, Any], body: _Body, kind: str, error: Exception) -> None:
        body.skip()
        text = str(error.strerror if isinstance(error, OSError) and error.strerror else error)[:500]
        self._stream.send({"id": header["id"], "kind": "error", "error": kind, "text": text})

    def _done(self, header: dict[str, Any]) -> None:
        self._stream.send({"id": header["id"], "kind": "done"})

    def _data(self, header: dict[str, Any], data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), BODY_LIMIT):
            self._stream.send({"id": header["id"], "kind": "data"}, view[start : start + BODY_LIMIT])

    def _ping(self, header: dict[str, Any], body: _Body) -> None:
        self._done(header)

    def _exec(self, header: dict[str, Any], body: _Body) -> None:
        words = body.read(int(header["words"]))
        self._programs.run(header, words, body.rest())

    def _put(self, header: dict[str, Any], body: _Body) -> None:
        """First the list of [path, bytes], then the contents."""
        files = json.loads(body.read(int(header["words"])))
        folders = {path.rpartition("/")[0] for path, _ in files}
        names = {path for path, _ in files}
        for path, _ in files:
            self._workspace.check(path)
        if above := {part for path in folders for part in _prefixes(path)} & names:
            raise ValueError(f"both a file and a folder: {sorted(above)[0][:80]!r}")
        for path, size in files:
            self._workspace.write(path, body.chunks(size))
        self._done(header)

    def _put_archive(self, header: dict[str, Any], body: _Body) -> None:
        unpack(self._workspace, body.rest(), self._bytes)
        self._done(header)

    def _get(self, header: dict[str, Any], body: _Body) -> None:
        self._data(header, self._workspace.read(json.loads(body.rest()), int(header["most"])))
        self._done(header)

    def _list(self, header: dict[str, Any], body: _Body) -> None:
        """Lines, each a list of entries: encoding them one by one takes as long as looking at them."""
        rows: list[dict[str, Any]] = []
        letters = 0
        for entry in self._workspace.scan():
            rows.append(entry)
            letters += len(entry["path"]) + len(entry.get("target", ""))
            if len(rows) >= _ROWS or letters >= _LETTERS:
                self._data(header, json.dumps(rows).encode() + b"\n")
                rows, letters = [], 0
        self._data(header, json.dumps(rows).encode() + b"\n")
        self._done(header)

    def _fetch(self, header: dict[str, Any], body: _Body) -> None:
        """Contents one after another, each after a line with its length."""
        left = int(header["most"])
        for path in json.loads(body.rest()):
            content = self._workspace.read(path, left)
            left -= len(content)
            self._data(header, b"%d\n" % len(content) + content)
        self._done(header)

    def _apply(self, header: dict[str, Any], body: _Body) -> None:
        """``remove`` paths, then ``write`` [path, kind, mode, target, bytes or None]."""
        asked = json.loads(body.read(int(header["words"])))
        for path in asked["remove"]:
            self._workspace.remove(path)
        modes: list[tuple[str, int]] = []
        for path, kind, mode, target, size in asked["write"]:
            if kind == "folder":
                self._workspace.folder(path, 0o755)
                modes.append((path, mode))
            elif kind == "link":
                self._workspace.link(path, target)
            elif size is None:
                self._workspace.set_mode(path, mode)
            else:
                self._workspace.write(path, body.chunks(size), mode)
        for path, mode in reversed(modes):
            if mode != 0o755:
                self._workspace.folder(path, mode)
        self._done(header)

    def _reset(self, header: dict[str, Any], body: _Body) -> None:
        held: list[int] = []
        for folder in _FOLDERS:
            if self._mounts:
                held.append(os.open(folder, os.O_PATH | os.O_CLOEXEC))
                kernel.unmount(folder)
                mount_folder(folder, self._bytes)
            else:
                clear(folder)
        self._workspace = Workspace(self._root)
        self._done(header)
        for descriptor in held:  # the old contents are freed here, after the answer
            os.close(descriptor)


def mount_folder(folder: str, size: int) -> None:
    """A fresh folder in memory, bounded in bytes and in entries."""
    entries = max(1024, size // _INODE_SHARE)
    options = f"size={size},nr_inodes={entries},mode=0700"
    kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)


def mount_folders(size: int) -> None:
    for folder in _FOLDERS:
        mount_folder(folder, size)


def _prefixes(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
