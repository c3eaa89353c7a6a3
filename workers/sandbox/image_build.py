"""An environment image as a list of files, made without a network from the worker's own environment.

``lib/`` holds the files of the declared distributions, ``bin/`` their declared commands. What an
installer wrote about this host (records, compiled caches, where it came from) is left out and modes
are brought to one of two, so the same list gives the same digest on every host with the same wheels.
"""

import fnmatch
import hashlib
import importlib.metadata
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workers.sandbox.image_list import FORMAT, ImageList
from workers.sandbox.protocol import SandboxUnavailable

_OF_THIS_HOST = {"RECORD", "INSTALLER", "REQUESTED", "WHEEL", "direct_url.json"}
_LEFT_OUT = ("*/tests/*", "*/__pycache__/*", "*.pyc", "*.pyi", "*.pyx", "*.pxd", "*.h", "*.hpp", "*.a")
_PORTABLE = b"#!/usr/bin/env python3\n"


@dataclass(frozen=True)
class ImageFile:
    """One regular file: where it goes, its mode (0644 or 0755), its bytes by sha256, and where the
    bytes come from (a path on this host, or the bytes themselves)."""

    path: str
    mode: int
    sha256: str
    source: Path | bytes

    def read(self) -> bytes:
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


def image_files(declared: ImageList) -> list[ImageFile]:
    """Every file of the image in order of path. Raises ``SandboxUnavailable``."""
    found: dict[str, ImageFile] = {}
    commands = set(declared.commands)
    for distribution in declared.distributions():
        for path, source in _installed(distribution):
            inside = _place(path, commands)
            if inside and not _left_out(inside, declared.leave_out):
                found[inside] = _file(inside, source)
    for name, text in declared.files:
        found[name] = _file(name, text.encode())
    if missing := [name for name in declared.commands if f"bin/{name}" not in found]:
        raise SandboxUnavailable(
            f"The image {declared.name!r} declares the command {missing[0]!r}; no package of it has one.",
            "Correct the list, or run make setup again.",
        )
    return [found[path] for path in sorted(found)]


def files_digest(files: list[ImageFile]) -> str:
    """sha256 over every path, mode and content."""
    rows = [[file.path, file.mode, file.sha256] for file in files]
    return hashlib.sha256(json.dumps([FORMAT, rows], separators=(",", ":")).encode()).hexdigest()


def archive(files: list[ImageFile]) -> bytes:
    """The files as one tar, the same bytes for the same files."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted({str(parent) for file in files for parent in PurePosixPath(file.path).parents}):
            if folder != ".":
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
        for file in files:
            data = file.read()
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(data), file.mode
            tar.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def _installed(distribution: importlib.metadata.Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    for path in distribution.files or ():
        source = Path(str(distribution.locate_file(path)))
        if source.is_file():
            yield PurePosixPath(path), source


def _place(path: PurePosixPath, commands: set[str]) -> str:
    """Where an installed file goes; "" for what lies outside site-packages and is no declared command."""
    if ".." not in path.parts:
        return "" if path.name in _OF_THIS_HOST and path.parent.suffix == ".dist-info" else f"lib/{path}"
    return f"bin/{path.name}" if path.parent.name == "bin" and path.name in commands else ""


def _left_out(inside: str, more: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(inside, pattern) for pattern in (*_LEFT_OUT, *more))


def _file(inside: str, source: Path | bytes) -> ImageFile:
    data = source if isinstance(source, bytes) else source.read_bytes()
    command = inside.startswith("bin/")
    if command and data.startswith(b"#!"):  # an installer writes this host's interpreter there
        source = data = _PORTABLE + data.split(b"\n", 1)[1]
    executable = command or (isinstance(source, Path) and bool(source.stat().st_mode & 0o100))
    mode = 0o755 if executable else 0o644
    return ImageFile(inside, mode, hashlib.sha256(data).hexdigest(), source)
