"""What a workspace holds, as data: entries with digests, in one canonical form that has a name.

The name (``id``) is the sha256 of the canonical form: the same content has the same id on every
host. Times, owners, hard links and extended attributes are no part of it; pipes, sockets and
devices are left out.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

Kind = Literal["file", "folder", "link"]

_FORMAT = "flywheel-workspace-1"


class SnapshotBroken(LookupError):
    """A snapshot that is not in the store, or whose content is not what its name says."""


class Entry(NamedTuple):
    """One entry; ``path`` is relative. ``digest`` (sha256) and ``bytes`` are of files, ``target`` of
    links. ``mode`` holds the nine permission bits of files and folders, 0 for links."""

    path: str
    kind: Kind
    mode: int = 0
    bytes: int = 0
    digest: str = ""
    target: str = ""

    def same_content(self, other: "Entry") -> bool:
        return (self.kind, self.digest, self.target) == (other.kind, other.digest, other.target)


class Manifest:
    """Entries by path; immutable."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: Mapping[str, Entry] = {
            entry.path: entry for entry in sorted(entries, key=lambda entry: entry.path)
        }

    @cached_property
    def canonical(self) -> bytes:
        """One JSON text, ASCII; names that are no UTF-8 are kept as lone surrogates."""
        rows = [_row(entry) for entry in self.entries.values()]
        return json.dumps({"format": _FORMAT, "entries": rows}, separators=(",", ":")).encode("ascii")

    @cached_property
    def id(self) -> str:
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def digests(self) -> set[str]:
        """Of all files."""
        return {entry.digest for entry in self.entries.values() if entry.kind == "file"}

    @classmethod
    def parse(cls, value: Any) -> "Manifest":
        """From the decoded canonical form. Raises ``SnapshotBroken``."""
        try:
            if value["format"] != _FORMAT:
                raise SnapshotBroken(f"not a workspace manifest: {value['format']!r}")
            return cls(_entry(row) for row in value["entries"])
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotBroken(f"not a workspace manifest: {error}") from error


def _row(entry: Entry) -> list[str | int]:
    if entry.kind == "file":
        return [entry.path, "file", entry.mode, entry.bytes, entry.digest]
    if entry.kind == "link":
        return [entry.path, "link", entry.target]
    return [entry.path, "folder", entry.mode]


def _entry(row: list[Any]) -> Entry:
    path, kind, *rest = row
    if kind == "file":
        mode, size, digest = rest
        return Entry(path, "file", mode, size, digest)
    if kind == "link":
        (target,) = rest
        return Entry(path, "link", target=target)
    if kind == "folder":
        (mode,) = rest
        return Entry(path, "folder", mode)
    raise ValueError(f"unknown kind {kind!r}")
