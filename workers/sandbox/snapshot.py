"""Snapshots of a workspace in the artifact store: taken by difference, restored by difference.

A snapshot is a manifest (see ``manifest.py``) and a record of where the contents lie: small files
packed together, large ones by themselves. The reference ``snapshots/<id>`` names the record. A
record is complete, so that no chain of parents is ever walked; contents that lie in too many packs
are packed anew. Sandboxes are not trusted: what is fetched is hashed here, and a digest that was
not fetched counts only when the snapshot before, of the same sandbox, has it.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

from artifacts import ArtifactStore, get_store
from artifacts.store import ArtifactMissing
from workers.sandbox.manifest import Entry, Manifest, SnapshotBroken
from workers.sandbox.protocol import MIB, Snapshot

LARGE = 256 * 1024
_BATCH = 8 * MIB  # of content that crosses into or out of a sandbox at once
_MOST_PACKS = 8
_THREADS = 4
_REMEMBERED = 64
_records: "dict[tuple[str, str], Record]" = {}  # the newest ones of this process: they never change
_lock = Lock()


class Workspace(Protocol):
    """What a live sandbox offers to this module. Nothing runs inside meanwhile."""

    async def scan(self) -> Sequence[Entry]:
        """Every file, folder and link below the workspace (which itself is no entry), with digests."""
        ...

    async def fetch(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """The contents of regular files, in one round trip."""
        ...

    async def apply(self, remove: Sequence[str], write: Sequence[tuple[Entry, bytes | None]]) -> None:
        """First remove entries (children come before their folders), then make the others (folders
        come before their children), with their modes. For a file, None keeps its content and sets
        the mode. No link is followed."""
        ...


@dataclass(frozen=True)
class Record:
    """``packed``: content digest → (pack, offset, length). A content that is not there is an artifact
    of its own."""

    manifest: Manifest
    packed: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)


async def take(
    workspace: Workspace, *, parent: Snapshot | None = None, store: ArtifactStore | None = None
) -> Snapshot:
    """The workspace as it is now. ``parent`` is the last snapshot taken of, or restored into, this
    sandbox: files with the digests it has are not read again."""
    found = store or get_store()
    before = await asyncio.to_thread(load, parent, store=found) if parent else Record(Manifest())
    entries = await workspace.scan()
    known = before.manifest.digests
    fresh: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind == "file" and entry.digest not in known:
            fresh.setdefault(entry.digest, entry)
    contents: dict[str, bytes] = {}
    for batch in _batches(fresh.values()):
        fetched = await workspace.fetch([entry.path for entry in batch])
        for entry in batch:
            content = fetched[entry.path]
            if hashlib.sha256(content).hexdigest() != entry.digest:
                raise SnapshotBroken(f"the sandbox gave another content for {entry.path!r} than it named")
            contents[entry.digest] = content
    manifest = Manifest(entries)
    if parent is None or manifest.id != parent.id:
        await asyncio.to_thread(_save, found, manifest, contents, before)
    return Snapshot(manifest.id, parent.id if parent else "")


async def restore(workspace: Workspace, snapshot: Snapshot, *, store: ArtifactStore | None = None) -> None:
    """Make the workspace what ``snapshot`` holds; only what differs is written. Raises
    ``SnapshotBroken``."""
    found = store or get_store()
    record = await asyncio.to_thread(load, snapshot, store=found)
    remove, write = difference(Manifest(await workspace.scan()), record.manifest)
    wanted = {entry.digest for entry, content in write if entry.kind == "file" and content}
    contents = await asyncio.to_thread(_contents, found, record, wanted)
    parts = list(_parts(write, contents))
    await workspace.apply(remove, parts[0] if parts else [])
    for part in parts[1:]:
        await workspace.apply([], part)


def load(snapshot: Snapshot, *, store: ArtifactStore | None = None) -> Record:
    """Raises ``SnapshotBroken``."""
    found = store or get_store()
    return _load(found, snapshot.id)


def read(snapshot: Snapshot, paths: Iterable[str], *, store: ArtifactStore | None = None) -> dict[str, bytes]:
    """Contents of regular files of a snapshot, without a sandbox. Raises ``SnapshotBroken``."""
    found = store or get_store()
    record = _load(found, snapshot.id)
    try:
        entries = {path: record.manifest.entries[path] for path in paths}
    except KeyError as error:
        raise SnapshotBroken(f"the snapshot has no {error}") from None
    contents = _contents(found, record, {entry.digest for entry in entries.values()})
    return {path: contents[entry.digest] for path, entry in entries.items()}


def difference(now: Manifest, wanted: Manifest) -> tuple[list[str], list[tuple[Entry, bool]]]:
    """(paths to remove, entries to make and whether their content is needed), both in the order in
    which they must be done."""
    remove = [
        path
        for path, entry in now.entries.items()
        if path not in wanted.entries or wanted.entries[path].kind != entry.kind or _moved(entry, wanted)
    ]
    gone = set(remove)
    write: list[tuple[Entry, bool]] = []
    for path, entry in wanted.entries.items():
        have = now.entries.get(path) if path not in gone else None
        if have is None or not have.same_content(entry):
            write.append((entry, True))
        elif have.mode != entry.mode:
            write.append((entry, False))
    return sorted(remove, reverse=True), sorted(write, key=lambda item: item[0].path)


def _moved(entry: Entry, wanted: Manifest) -> bool:
    """A link cannot be pointed elsewhere: it is made anew."""
    return entry.kind == "link" and wanted.entries[entry.path].target != entry.target


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if batch and size + entry.bytes > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.bytes
    if batch:
        yield batch


def _parts(
    write: Sequence[tuple[Entry, bool]], contents: Mapping[str, bytes]
) -> Iterator[list[tuple[Entry, bytes | None]]]:
    part: list[tuple[Entry, bytes | None]] = []
    size = 0
    for entry, needed in write:
        content = contents[entry.digest] if entry.kind == "file" and needed else None
        if part and size + len(content or b"") > _BATCH:
            yield part
            part, size = [], 0
        part.append((entry, content))
        size += len(content or b"")
    if part:
        yield part


def _save(store: ArtifactStore, manifest: Manifest, contents: Mapping[str, bytes], before: Record) -> None:
    """Contents first, the record then, the reference last: a reference never names what is not there."""
    wanted = manifest.digests
    packed = {digest: place for digest, place in before.packed.items() if digest in wanted}
    small = {digest: content for digest, content in contents.items() if len(content) < LARGE}
    if len({pack for pack, _, _ in packed.values()}) >= _MOST_PACKS:
        small |= _contents(store, Record(manifest, packed), set(packed))
        packed = {}
    pack = b"".join(small.values())
    name, offset = hashlib.sha256(pack).hexdigest(), 0
    for digest, content in small.items():
        packed[digest] = (name, offset, len(content))
        offset += len(content)
    blobs = [content for content in contents.values() if len(content) >= LARGE]
    blobs += [pack] if small else []
    blobs.append(_encoded(Record(manifest, packed)))
    *_, stored = _threads().map(store.put, blobs)  # each waits for the disk: together they wait once
    store.ref_set(f"snapshots/{manifest.id}", stored)
    _remember(store, manifest.id, Record(manifest, packed))


def _encoded(record: Record) -> bytes:
    """Packs by number, so that a large workspace stays a small text."""
    packs = {
        pack: number for number, pack in enumerate(sorted({pack for pack, _, _ in record.packed.values()}))
    }
    packed = {
        digest: (packs[pack], offset, length) for digest, (pack, offset, length) in record.packed.items()
    }
    rest = json.dumps({"packs": list(packs), "packed": packed}, separators=(",", ":"), sort_keys=True)
    return b'{"manifest":%b,%b' % (record.manifest.canonical, rest[1:].encode())


def _decoded(value: Any) -> Record:
    packs = [str(pack) for pack in value["packs"]]
    packed = {digest: (packs[p], int(o), int(n)) for digest, (p, o, n) in value["packed"].items()}
    return Record(Manifest.parse(value["manifest"]), packed)


def _contents(store: ArtifactStore, record: Record, wanted: set[str]) -> dict[str, bytes]:
    """Contents by digest. Raises ``SnapshotBroken``."""
    found: dict[str, bytes] = {}
    packs: dict[str, bytes] = {}
    try:
        for digest in wanted:
            if digest not in record.packed:
                found[digest] = store.get(digest)
                continue
            pack, offset, length = record.packed[digest]
            if pack not in packs:
                packs[pack] = store.get(pack)
            found[digest] = packs[pack][offset : offset + length]
    except ArtifactMissing as error:
        raise SnapshotBroken(f"a content of the snapshot is gone: {error}") from error
    return found


def _load(store: ArtifactStore, id: str) -> Record:
    with _lock:
        known = _records.get((store.url, id))
    if known is not None:
        return known
    name = store.ref_get(f"snapshots/{id}")
    if name is None:
        raise SnapshotBroken(f"no snapshot {id[:80]}")
    try:
        record = _decoded(store.get_json(name))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotBroken(f"the snapshot {id[:80]} cannot be read: {error}") from error
    if record.manifest.id != id:
        raise SnapshotBroken(f"the snapshot {id} is damaged")
    return _remember(store, id, record)


def _remember(store: ArtifactStore, id: str, record: Record) -> Record:
    with _lock:
        _records[store.url, id] = record
        while len(_records) > _REMEMBERED:
            del _records[next(iter(_records))]
    return record


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshot")
