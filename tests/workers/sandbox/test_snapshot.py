"""Snapshots by difference, on a workspace in memory: what crosses, what is stored, what is refused."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts import ArtifactStore
from workers.sandbox import snapshot as snapshots
from workers.sandbox.manifest import Entry, Manifest, SnapshotBroken
from workers.sandbox.protocol import Snapshot


class FakeWorkspace:
    """Entries and contents in dictionaries; every write is checked as a file system would."""

    def __init__(self, files: Mapping[str, bytes] = {}) -> None:
        self.entries: dict[str, Entry] = {}
        self.contents: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.written: list[str] = []
        for path, content in files.items():
            self.put(path, content)

    def put(self, path: str, content: bytes, mode: int = 0o644) -> None:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            self.entries.setdefault(folder, Entry(folder, "folder", 0o755))
        digest = hashlib.sha256(content).hexdigest()
        self.entries[path] = Entry(path, "file", mode, len(content), digest)
        self.contents[path] = content

    async def scan(self) -> Sequence[Entry]:
        return list(self.entries.values())

    async def fetch(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        self.fetched += paths
        return {path: self.contents[path] for path in paths}

    async def apply(self, remove: Sequence[str], write: Sequence[tuple[Entry, bytes | None]]) -> None:
        for path in remove:
            assert not any(other.startswith(path + "/") for other in self.entries), "folder not empty"
            del self.entries[path]
            self.contents.pop(path, None)
        for entry, content in write:
            parent = entry.path.rpartition("/")[0]
            assert not parent or self.entries[parent].kind == "folder", "no folder to write into"
            have = self.entries.get(entry.path)
            assert have is None or have.kind == entry.kind != "link", "something else is in the way"
            self.entries[entry.path] = entry
            self.written.append(entry.path)
            if content is not None:
                self.contents[entry.path] = content


def take(workspace: FakeWorkspace, store: ArtifactStore, parent: Snapshot | None = None) -> Snapshot:
    return asyncio.run(snapshots.take(workspace, parent=parent, store=store))


def restore(workspace: FakeWorkspace, snapshot: Snapshot, store: ArtifactStore) -> None:
    asyncio.run(snapshots.restore(workspace, snapshot, store=store))


def test_only_files_that_changed_since_the_parent_are_read(store: ArtifactStore) -> None:
    workspace = FakeWorkspace({"a": b"1", "folder/b": b"2"})
    first = take(workspace, store)
    workspace.put("folder/b", b"3")
    workspace.fetched.clear()

    second = take(workspace, store, parent=first)

    assert workspace.fetched == ["folder/b"]
    assert second.parent == first.id
    assert snapshots.read(second, ["a", "folder/b"], store=store) == {"a": b"1", "folder/b": b"3"}


def test_only_what_differs_is_written_back(store: ArtifactStore) -> None:
    workspace = FakeWorkspace({"a": b"1", "b": b"2", "c": b"3"})
    before = take(workspace, store)
    workspace.put("b", b"changed")
    workspace.put("new/file", b"x")
    workspace.entries["c"] = Entry("c", "file", 0o600, 1, workspace.entries["c"].digest)

    restore(workspace, before, store)

    assert workspace.written == ["b", "c"]
    assert take(workspace, store).id == before.id
    assert workspace.contents == {"a": b"1", "b": b"2", "c": b"3"}


def test_an_unchanged_workspace_is_the_same_snapshot(store: ArtifactStore) -> None:
    one, other = FakeWorkspace({"x": b"1", "y": b"2"}), FakeWorkspace({"y": b"2", "x": b"1"})

    assert take(one, store).id == take(other, store).id


def test_many_small_files_are_one_artifact_and_a_large_one_is_its_own(store: ArtifactStore) -> None:
    workspace = FakeWorkspace({f"{number}": b"%d" % number for number in range(50)})
    workspace.put("large", bytes(snapshots.LARGE))

    snapshot = take(workspace, store)

    record = snapshots.load(snapshot, store=store)
    assert len({pack for pack, _, _ in record.packed.values()}) == 1
    assert store.exists(hashlib.sha256(bytes(snapshots.LARGE)).hexdigest())


def test_a_long_chain_of_snapshots_is_packed_anew(store: ArtifactStore) -> None:
    workspace, last = FakeWorkspace(), None
    for number in range(30):
        workspace.put(f"{number}", b"%d" % number)
        last = take(workspace, store, parent=last)

    assert last is not None
    record = snapshots.load(last, store=store)
    assert len({pack for pack, _, _ in record.packed.values()}) <= 9
    assert snapshots.read(last, ["0", "29"], store=store) == {"0": b"0", "29": b"29"}


def test_a_sandbox_that_names_one_content_and_gives_another_is_refused(store: ArtifactStore) -> None:
    workspace = FakeWorkspace({"a": b"1"})
    workspace.contents["a"] = b"other"

    with pytest.raises(SnapshotBroken, match="another content for 'a'"):
        take(workspace, store)


def test_a_digest_that_was_never_fetched_from_this_sandbox_opens_nothing(store: ArtifactStore) -> None:
    secret = store.put(b"a secret of another project")
    workspace = FakeWorkspace({"a": b"1"})
    workspace.entries["a"] = Entry("a", "file", 0o644, 27, secret)

    with pytest.raises(SnapshotBroken):
        take(workspace, store)


def test_a_file_where_a_folder_was_and_the_other_way_round(store: ArtifactStore) -> None:
    workspace = FakeWorkspace({"a/b": b"1", "c": b"2"})
    before = take(workspace, store)
    for path in ("a/b", "a", "c"):
        del workspace.entries[path]
    workspace.put("a", b"file now")
    workspace.put("c/d", b"folder now")

    restore(workspace, before, store)

    assert take(workspace, store).id == before.id


def test_what_is_damaged_or_unknown_is_said(store: ArtifactStore) -> None:
    with pytest.raises(SnapshotBroken, match="no snapshot"):
        snapshots.load(Snapshot("0" * 64), store=store)
    store.ref_set("snapshots/" + "1" * 64, store.put_json({"manifest": {"format": "other"}}))
    with pytest.raises(SnapshotBroken):
        snapshots.load(Snapshot("1" * 64), store=store)


NAMES = st.sampled_from(["a", "b", "a/x", "a/y", "a-b", "b/x/deep", "c\udcff"])
STATES = st.dictionaries(
    NAMES, st.tuples(st.sampled_from([b"", b"1", b"22"]), st.sampled_from([0o644, 0o700]))
)


@given(STATES, STATES)
def test_the_difference_makes_any_state_of_any_other(first: dict, second: dict) -> None:
    def build(state: dict) -> FakeWorkspace:
        workspace = FakeWorkspace()
        for path, (content, mode) in state.items():
            if not any(other.startswith(path + "/") for other in state):
                workspace.put(path, content, mode)
        return workspace

    wanted, workspace = build(first), build(second)
    remove, write = snapshots.difference(
        Manifest(workspace.entries.values()), Manifest(wanted.entries.values())
    )

    contents = [(entry, wanted.contents.get(entry.path) if needed else None) for entry, needed in write]
    asyncio.run(workspace.apply(remove, contents))

    assert workspace.entries == wanted.entries
    assert workspace.contents == wanted.contents


def test_the_id_is_that_of_the_content_alone() -> None:
    entries = [Entry("b", "link", target="a"), Entry("a", "file", 0o644, 1, "0" * 64)]

    assert Manifest(entries).id == Manifest(reversed(entries)).id
    assert Manifest(entries).id != Manifest([entries[1]]).id
    assert Manifest.parse(json.loads(Manifest(entries).canonical)).id == Manifest(entries).id
