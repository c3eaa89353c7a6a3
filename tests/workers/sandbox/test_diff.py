"""Changes between two snapshots as the trajectory viewer shows them."""

import asyncio
from collections.abc import Callable

import pytest

from artifacts import ArtifactStore
from tests.workers.sandbox.test_snapshot import FakeWorkspace
from workers.sandbox import snapshot as snapshots
from workers.sandbox.diff import DIFF_BYTES, changes, unified
from workers.sandbox.manifest import Entry
from workers.sandbox.protocol import Snapshot

Take = Callable[[FakeWorkspace], Snapshot]


@pytest.fixture
def taken(store: ArtifactStore) -> Take:
    def take(workspace: FakeWorkspace) -> Snapshot:
        return asyncio.run(snapshots.take(workspace, store=store))

    return take


def test_added_removed_and_modified_files_are_told_with_digests(store: ArtifactStore, taken: Take) -> None:
    before = taken(FakeWorkspace({"gone": b"1\n", "kept": b"2\n", "src/a.py": b"x = 1\ny = 2\n"}))
    after = taken(FakeWorkspace({"kept": b"2\n", "src/a.py": b"x = 1\ny = 3\n", "src/new": b"4"}))

    found = changes(before, after, store=store)

    assert [(change.path, change.change) for change in found] == [
        ("gone", "removed"),
        ("src/a.py", "modified"),
        ("src/new", "added"),
    ]
    assert found[0].after == ""
    assert len(found[0].before) == 64
    assert found[1].diff == "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    assert found[2].diff.endswith("+4\n\\ No newline at end of file\n")
    assert found[2].bytes == 1


def test_the_first_snapshot_is_all_added(store: ArtifactStore, taken: Take) -> None:
    assert [change.change for change in changes(None, taken(FakeWorkspace({"a/b": b"1"})), store=store)] == [
        "added"
    ]


def test_binary_files_have_no_diff_and_long_diffs_are_cut(store: ArtifactStore, taken: Take) -> None:
    before = taken(FakeWorkspace({"binary": b"\0\1", "long": b""}))
    after = taken(FakeWorkspace({"binary": b"\0\2", "long": b"a line of text\n" * 1000}))

    binary, long = changes(before, after, store=store)

    assert binary.diff == ""
    assert long.diff.endswith("\n[cut]\n")
    assert len(long.diff) <= DIFF_BYTES + 10


def test_many_long_diffs_together_stay_small(store: ArtifactStore, taken: Take) -> None:
    after = taken(FakeWorkspace({f"{number}": b"a line of text\n" * 1000 for number in range(60)}))

    found = changes(None, after, store=store)

    assert len(found) == 60
    assert sum(len(change.diff) for change in found) <= 64 * 1024


def test_links_and_modes_are_shown(store: ArtifactStore, taken: Take) -> None:
    old, new = FakeWorkspace({"run": b"x"}), FakeWorkspace({"run": b"x"})
    old.entries["link"] = Entry("link", "link", target="run")
    new.entries["link"] = Entry("link", "link", target="/etc/shadow")
    new.put("run", b"x", mode=0o755)

    link, mode = changes(taken(old), taken(new), store=store)

    assert "-link to run\n+link to /etc/shadow\n" in link.diff
    assert mode.diff == "mode 644 -> 755\n"


def test_a_folder_that_became_a_file_is_an_added_file(store: ArtifactStore, taken: Take) -> None:
    before, after = taken(FakeWorkspace({"a/b": b"1"})), taken(FakeWorkspace({"a": b"2"}))

    found = changes(before, after, store=store)

    assert [(change.path, change.change) for change in found] == [("a", "added"), ("a/b", "removed")]


def test_texts_that_are_no_files_can_be_compared() -> None:
    assert unified("tickets/7", "open\n", "closed\n").endswith("-open\n+closed\n")
