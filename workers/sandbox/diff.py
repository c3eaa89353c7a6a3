"""What changed between two snapshots, as a person reads it. Folders are left out: they follow."""

import difflib
from collections.abc import Iterator

from artifacts import ArtifactStore, get_store
from domain.contracts.trajectory import FileChange
from workers.sandbox import snapshot as snapshots
from workers.sandbox.manifest import Entry
from workers.sandbox.protocol import Snapshot

DIFF_BYTES = 4 * 1024  # of one file
_COMPARED_BYTES = 256 * 1024  # a larger file gets no diff: comparing takes time that grows with its square
_COMPARED_LINES = 5_000
_TOTAL_BYTES = 64 * 1024
_MOST_CHANGES = 500


def changes(
    before: Snapshot | None, after: Snapshot, *, store: ArtifactStore | None = None
) -> tuple[FileChange, ...]:
    """In order of path, at most 500. ``bytes`` is the size after (before, of what was removed). A link
    counts as a file that holds its target. Raises ``SnapshotBroken``."""
    found = store or get_store()
    old = snapshots.load(before, store=found).manifest.entries if before else {}
    new = snapshots.load(after, store=found).manifest.entries
    pairs = [(old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys())]
    differing = [(a, b) for a, b in pairs if a != b and not (_folder(a) and _folder(b))][:_MOST_CHANGES]
    texts = [_Side(before, found, [a for a, _ in differing]), _Side(after, found, [b for _, b in differing])]
    result: list[FileChange] = []
    room = _TOTAL_BYTES
    for a, b in differing:
        diff = _capped(
            "".join(_lines(a, b, *(side.text(entry) for side, entry in zip(texts, (a, b), strict=True))))
        )
        diff = diff if len(diff) <= room else ""
        room -= len(diff)
        result.append(_change(a, b, diff))
    return tuple(result)


def unified(path: str, before: str, after: str) -> str:
    """A unified diff of two texts, cut to ``DIFF_BYTES``; also for states that are no files."""
    return _capped("".join(_unified(path, before, after)))


class _Side:
    """The contents of one snapshot that are small enough to be compared, read at once."""

    def __init__(self, snapshot: Snapshot | None, store: ArtifactStore, entries: list[Entry | None]) -> None:
        wanted = [
            entry.path
            for entry in entries
            if entry is not None and entry.kind == "file" and entry.bytes <= _COMPARED_BYTES
        ]
        self._contents = snapshots.read(snapshot, wanted, store=store) if snapshot and wanted else {}

    def text(self, entry: Entry | None) -> str | None:
        """None for what is no text."""
        if entry is None or entry.kind == "folder":
            return ""
        if entry.kind == "link":
            return f"link to {entry.target}\n"
        content = self._contents.get(entry.path)
        if content is None or b"\0" in content:
            return None
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return None


def _lines(a: Entry | None, b: Entry | None, before: str | None, after: str | None) -> Iterator[str]:
    if a is not None and b is not None and a.kind == b.kind and a.mode != b.mode:
        yield f"mode {a.mode:o} -> {b.mode:o}\n"
    entry = b or a
    if entry is not None and before is not None and after is not None:
        yield from _unified(entry.path, before, after)


def _unified(path: str, before: str, after: str) -> Iterator[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old) + len(new) > _COMPARED_LINES:
        return
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _capped(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= DIFF_BYTES:
        return data.decode("utf-8")
    return data[:DIFF_BYTES].decode("utf-8", "ignore").rpartition("\n")[0] + "\n[cut]\n"


def _change(a: Entry | None, b: Entry | None, diff: str) -> FileChange:
    a, b = (None if _folder(entry) else entry for entry in (a, b))
    kept = b or a
    assert kept is not None  # two folders never come here
    return FileChange(
        path=kept.path.encode("utf-8", "replace").decode(),
        change="modified" if a and b else "added" if b else "removed",
        before=a.digest if a else "",
        after=b.digest if b else "",
        bytes=kept.bytes,
        diff=diff,
    )


def _folder(entry: Entry | None) -> bool:
    return entry is None or entry.kind == "folder"
