"""Unpacking a tar or zip into the workspace: all entries are judged before the first is written.

An entry may be a file, a folder, or a link that stays inside. A link's target is relative, goes up
only at its start, and never above the workspace; as every folder on the way to an entry is a real
one, chains of such links stay inside too. Contents are bounded before they are unpacked.
"""

from __future__ import annotations

import os
import stat

from .files import MOST, Unsafe, Workspace, components

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

_CHUNK = 1 << 16
_LZMA_MEMORY = 80 << 20
_SPOOL_FOLDER = "/tmp"


class _Entry:
    """``kind`` is file, folder, link or hard; ``target`` of links; ``open`` of files."""

    def __init__(self, path: str, kind: str, mode: int, *, target: str = "", size: int = 0) -> None:
        self.path = path
        self.kind = kind
        self.mode = mode
        self.target = target
        self.size = size
        self.open: Callable[[], IO[bytes]] | None = None


def unpack(workspace: Workspace, data: bytes, most: int) -> None:
    """Write what ``data`` holds, at most ``most`` bytes. Raises ``Unsafe`` or ``ValueError``."""
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            _unpack(workspace, _zip_entries(data), most)
        else:
            with _plain(data, most) as spool, tarfile.open(fileobj=spool, mode="r:") as tar:
                _unpack(workspace, _tar_entries(tar), most)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"no archive that can be read: {error}") from None
    except (EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise ValueError(f"no archive that can be read: {error}") from None
    except MemoryError:
        raise ValueError("the archive needs too much memory") from None


def _unpack(workspace: Workspace, entries: Iterator[_Entry], most: int) -> None:
    kept: dict[str, _Entry] = {}
    total = 0
    for entry in entries:
        total += entry.size
        if total > most or len(kept) >= MOST:
            raise ValueError("the archive holds more than the workspace may")
        if entry.path in kept and kept[entry.path].kind == entry.kind == "folder":
            continue
        if entry.path in kept:
            raise ValueError(f"the archive has two entries {entry.path[:80]!r}")
        kept[entry.path] = entry
    for entry in kept.values():
        _judge(entry, kept)
        if entry.kind != "folder":
            workspace.check(entry.path)
    for entry in kept.values():
        _write(workspace, entry, most)


def _judge(entry: _Entry, kept: dict[str, _Entry]) -> None:
    parts = entry.path.split("/")
    for end in range(1, len(parts)):
        above = kept.get("/".join(parts[:end]))
        if above is not None and above.kind in ("link", "hard"):
            raise Unsafe(f"an entry leads through a link: {entry.path[:80]!r}")
        if above is not None and above.kind != "folder":
            raise ValueError(f"an entry lies below a file: {entry.path[:80]!r}")
    if entry.kind == "link":
        steps = entry.target.split("/")
        ups = next((at for at, step in enumerate(steps) if step != ".."), len(steps))
        leaves = ups > len(parts) - 1 or ".." in steps[ups:] or "\0" in entry.target
        if not entry.target or entry.target.startswith("/") or leaves:
            raise Unsafe(f"a link leads out: {entry.path[:80]!r}")
    if entry.kind == "hard" and kept.get(entry.target, entry).kind != "file":
        raise Unsafe(f"a hard link to what the archive does not hold: {entry.path[:80]!r}")


def _write(workspace: Workspace, entry: _Entry, most: int) -> None:
    if entry.kind == "folder":
        workspace.folder(entry.path, entry.mode | 0o700)
    elif entry.kind == "link":
        workspace.remove(entry.path)
        workspace.link(entry.path, entry.target)
    elif entry.kind == "hard":
        workspace.remove(entry.path)
        workspace.hard_link(entry.path, entry.target)
    elif entry.open is not None:
        with entry.open() as stream:
            workspace.write(entry.path, _bounded(stream, entry.size), entry.mode | 0o600)


def _bounded(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """A content that is longer than it was said to be is a bomb."""
    while chunk := stream.read(_CHUNK):
        size -= len(chunk)
        if size < 0:
            raise ValueError("an entry is longer than it says")
        yield chunk


def _tar_entries(tar: Any) -> Iterator[_Entry]:
    for member in tar:
        path = _clean(member.name)
        if not path and member.isdir():
            continue
        components(path or member.name)
        if member.isdir():
            yield _Entry(path, "folder", member.mode)
        elif member.issym():
            yield _Entry(path, "link", 0, target=member.linkname)
        elif member.islnk():
            yield _Entry(path, "hard", 0, target=_clean(member.linkname))
        elif member.isreg():
            entry = _Entry(path, "file", member.mode, size=member.size)
            entry.open = lambda member=member: tar.extractfile(member)  # type: ignore[misc]
            yield entry
        else:
            raise Unsafe(f"a device or a pipe: {path[:80]!r}")


def _zip_entries(data: bytes) -> Iterator[_Entry]:
    import io
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(data))
    for info in archive.infolist():
        mode = info.external_attr >> 16
        path = _clean(info.filename)
        components(path or info.filename)
        kind = stat.S_IFMT(mode)
        if info.is_dir():
            yield _Entry(path, "folder", stat.S_IMODE(mode) or 0o755)
        elif kind == stat.S_IFLNK:
            if info.file_size > 4096:
                raise Unsafe(f"a link leads out: {path[:80]!r}")
            yield _Entry(path, "link", 0, target=os.fsdecode(archive.read(info)))
        elif kind in (0, stat.S_IFREG):
            entry = _Entry(path, "file", stat.S_IMODE(mode) or 0o644, size=info.file_size)
            entry.open = lambda info=info: archive.open(info)  # type: ignore[misc]
            yield entry
        else:
            raise Unsafe(f"a device or a pipe: {path[:80]!r}")


def _clean(name: str) -> str:
    """``./a/b/`` as most tools write it is ``a/b``; all else stays, to be judged."""
    while name.startswith("./"):
        name = name[2:]
    return "" if name == "." else name.rstrip("/")


def _plain(data: bytes, most: int) -> IO[bytes]:
    """The tar itself, decompressed into a file without a name, as far as the limits reach."""
    import tempfile

    spool = tempfile.TemporaryFile(dir=_SPOOL_FOLDER)  # noqa: SIM115
    room = most + 1024 * 1024 + len(data)  # headers and padding
    for chunk in _decompressed(data):
        room -= len(chunk)
        if room < 0:
            spool.close()
            raise ValueError("the archive holds more than the workspace may")
        spool.write(chunk)
    spool.seek(0)
    return spool


def _decompressed(data: bytes) -> Iterator[bytes]:
    if data[:2] == b"\x1f\x8b":
        import zlib

        gzip = zlib.decompressobj(wbits=31)
        pending = data
        while pending and not gzip.eof:
            yield gzip.decompress(pending, _CHUNK)
            pending = gzip.unconsumed_tail
        if not gzip.eof:
            raise ValueError("no archive that can be read: it ends too early")
    elif data[:6] == b"\xfd7zXZ\x00":
        import lzma

        xz = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY)
        yield xz.decompress(data, _CHUNK)
        while not xz.eof:
            if xz.needs_input:
                raise ValueError("no archive that can be read: it ends too early")
            yield xz.decompress(b"", _CHUNK)
    else:
        yield data
