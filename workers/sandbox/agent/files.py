"""The workspace's files, reached component by component so that no link is ever followed.

No program runs meanwhile. Names are text as ``os.fsdecode`` makes it. Errors that the host's caller
should see are ``Unsafe`` (a path that would leave the workspace), ``FileNotFoundError`` and
``ValueError``; ``OSError`` is what a full disk or a strange mode gives.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

DEEPEST = 128
MOST = 200_000
_CHUNK = 1 << 18
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unsafe(ValueError):
    """A path that would leave the workspace."""


def components(path: str) -> list[str]:
    """Raises ``Unsafe`` unless ``path`` is relative and stays below where it starts."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise Unsafe(f"not a relative path inside the workspace: {path[:80]!r}")
    if len(parts) > DEEPEST:
        raise ValueError(f"nested too deep: {path[:80]!r}")
    return parts


class Workspace:
    def __init__(self, root: str) -> None:
        self.root = root

    def check(self, path: str) -> None:
        """Could a file be put at ``path``? Raises ``Unsafe`` or ``ValueError``; changes nothing."""
        parts = components(path)
        try:
            folder = self._parent(parts)
        except FileNotFoundError:
            return
        try:
            found = _look(parts[-1], folder)
        finally:
            os.close(folder)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise Unsafe(f"a link is in the way: {path[:80]!r}")
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise ValueError(f"a folder is in the way: {path[:80]!r}")

    def write(self, path: str, chunks: Iterable[bytes], mode: int = 0o644) -> None:
        """Make a file anew (other names of an old one keep their content)."""
        parts = components(path)
        folder = self._parent(parts, make=True)
        try:
            found = _look(parts[-1], folder)
            if found is not None and stat.S_ISLNK(found.st_mode):
                raise Unsafe(f"a link is in the way: {path[:80]!r}")
            if found is not None:
                os.unlink(parts[-1], dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(parts[-1], flags, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
            os.fchmod(descriptor, mode & 0o777)
        finally:
            os.close(descriptor)

    def read(self, path: str, most: int) -> bytes:
        """A regular file of at most ``most`` bytes."""
        parts = components(path)
        folder = self._parent(parts)
        try:
            found = _look(parts[-1], folder)
            if found is None:
                raise FileNotFoundError(path[:200])
            if stat.S_ISLNK(found.st_mode):
                raise Unsafe(f"a link: {path[:80]!r}")
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"no regular file: {path[:80]!r}")
            if found.st_size > most:
                raise ValueError(f"larger than {most} bytes: {path[:80]!r}")
            descriptor = _open_file(parts[-1], folder, found)
        finally:
            os.close(folder)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            return b"".join(iter(lambda: stream.read(_CHUNK), b""))

    def scan(self) -> Iterator[dict[str, Any]]:
        """Every entry that is a file, folder or link, folders before what is in them."""
        count = 0
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            parts = waiting.pop()
            if len(parts) >= DEEPEST:
                raise ValueError(f"folders are nested deeper than {DEEPEST}")
            folder = self._open(parts)
            try:
                for name in sorted(os.listdir(folder)):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    entry = self._entry((*parts, name), found, folder)
                    if entry is None:
                        continue
                    count += 1
                    if count > MOST:
                        raise ValueError(f"more than {MOST} entries")
                    if entry["kind"] == "folder":
                        waiting.append((*parts, name))
                    yield entry
            finally:
                os.close(folder)

    def link(self, path: str, target: str) -> None:
        parts = components(path)
        folder = self._parent(parts, make=True)
        try:
            os.symlink(target, parts[-1], dir_fd=folder)
        finally:
            os.close(folder)

    def hard_link(self, path: str, source: str) -> None:
        """Another name for the regular file ``source``."""
        theirs, parts = components(source), components(path)
        origin = self._parent(theirs)
        try:
            folder = self._parent(parts, make=True)
            try:
                found = _look(theirs[-1], origin)
                if found is None or not stat.S_ISREG(found.st_mode):
                    raise Unsafe(f"a hard link to what is no file: {path[:80]!r}")
                os.link(theirs[-1], parts[-1], src_dir_fd=origin, dst_dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
        finally:
            os.close(origin)

    def folder(self, path: str, mode: int = 0o755) -> None:
        """Make it (and those above) if it is not there, and set its mode."""
        parts = components(path)
        above = self._parent(parts, make=True)
        try:
            descriptor = _enter(parts[-1], above, path, make=True)
        finally:
            os.close(above)
        try:
            os.fchmod(descriptor, mode & 0o777)
        finally:
            os.close(descriptor)

    def set_mode(self, path: str, mode: int) -> None:
        parts = components(path)
        folder = self._parent(parts)
        try:
            found = _look(parts[-1], folder)
            if found is None or not stat.S_ISREG(found.st_mode):
                raise ValueError(f"no regular file: {path[:80]!r}")
            os.chmod(parts[-1], mode & 0o777, dir_fd=folder)
        finally:
            os.close(folder)

    def remove(self, path: str) -> None:
        """A file, a link or an empty folder; harmless if it is not there."""
        parts = components(path)
        try:
            folder = self._parent(parts)
        except FileNotFoundError:
            return
        try:
            found = _look(parts[-1], folder)
            if found is None:
                return
            if stat.S_ISDIR(found.st_mode):
                clear(parts[-1], folder)
                os.rmdir(parts[-1], dir_fd=folder)
            else:
                os.unlink(parts[-1], dir_fd=folder)
        finally:
            os.close(folder)

    def _entry(
        self,
        parts: tuple[str, ...],
        found: os.stat_result,
        folder: int,
    ) -> dict[str, Any] | None:
        path, mode = "/".join(parts), found.st_mode & 0o777
        if stat.S_ISDIR(found.st_mode):
            return {"path": path, "mode": mode, "kind": "folder"}
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(parts[-1], dir_fd=folder)
            return {"path": path, "mode": 0, "kind": "link", "target": target}
        if not stat.S_ISREG(found.st_mode):
            return None
        # Read every time: what is written through a shared map on tmpfs changes no time stamp.
        digest = _digest(_open_file(parts[-1], folder, found))
        return {"path": path, "mode": mode, "kind": "file", "bytes": found.st_size, "digest": digest}

    def _open(self, parts: Iterable[str]) -> int:
        descriptor = os.open(self.root, _FOLDER)
        for part in parts:
            descriptor = _step(descriptor, part, "")
        return descriptor

    def _parent(self, parts: list[str], *, make: bool = False) -> int:
        descriptor = os.open(self.root, _FOLDER)
        for part in parts[:-1]:
            descriptor = _step(descriptor, part, "/".join(parts), make=make)
        return descriptor


def clear(path: str, within: int | None = None) -> None:
    """Remove all that is below the folder ``path``, however deep: what is nested is lifted up first."""
    top = _enter(path, within, path)
    try:
        waiting = [name for name in os.listdir(top)]
        number = 0
        while waiting:
            name = waiting.pop()
            if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=top)
                continue
            inner = _enter(name, top, name)
            try:
                for child in os.listdir(inner):
                    if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                        number += 1
                        lifted = f".lifted-{os.getpid()}-{number}-{os.urandom(4).hex()}"
                        os.chmod(child, 0o700, dir_fd=inner)
                        os.rename(child, lifted, src_dir_fd=inner, dst_dir_fd=top)
                        waiting.append(lifted)
                    else:
                        os.unlink(child, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _step(descriptor: int, part: str, path: str, *, make: bool = False) -> int:
    """From an open folder into one of its folders; the first is closed."""
    try:
        return _enter(part, descriptor, path, make=make)
    finally:
        os.close(descriptor)


def _enter(name: str, within: int | None, path: str, *, make: bool = False) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=within)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, 0o755, dir_fd=within)
        return os.open(name, _FOLDER, dir_fd=within)
    except PermissionError:
        # A program took the owner's bits away. It is a folder: links have no modes.
        os.chmod(name, 0o700, dir_fd=within)
        return os.open(name, _FOLDER, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        found = os.stat(name, dir_fd=within, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise Unsafe(f"the path leads through a link: {path[:80]!r}") from None
        raise ValueError(f"a file is in the way: {path[:80]!r}") from None


def _look(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open_file(name: str, folder: int, found: os.stat_result) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o600, dir_fd=folder)
        try:
            return os.open(name, flags, dir_fd=folder)
        finally:
            os.chmod(name, stat.S_IMODE(found.st_mode), dir_fd=folder)


def _digest(descriptor: int) -> str:
    import hashlib

    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
