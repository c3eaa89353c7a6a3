from pathlib import Path

import pytest

from artifacts import ArtifactMissing, ArtifactStore


def test_bytes_come_back_under_their_digest(store: ArtifactStore) -> None:
    digest = store.put(b"hello")

    assert store.get(digest) == b"hello"
    assert store.put(b"hello") == digest


def test_a_damaged_artifact_is_refused(store: ArtifactStore, tmp_path: Path) -> None:
    digest = store.put(b"hello")
    (tmp_path / "artifacts" / digest[:2] / digest).write_bytes(b"jello")

    with pytest.raises(ArtifactMissing, match="damaged"):
        store.get(digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_only_digests_name_artifacts(store: ArtifactStore, digest: str) -> None:
    with pytest.raises(ArtifactMissing):
        store.get(digest)


def test_jsonl_keeps_line_separators_inside_strings(store: ArtifactStore) -> None:
    rows = [{"text": "a\u2028b\nc\x85d"}, {"n": 1}]

    digest = store.put_jsonl(rows)

    assert list(store.iter_jsonl(digest)) == rows


def test_a_tree_comes_back_whole(store: ArtifactStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"a")
    (source / "deep" / "b.bin").write_bytes(b"\x00b")

    target = store.materialize(store.put_tree(source), tmp_path / "out" / "tree")

    assert (target / "a.txt").read_bytes() == b"a"
    assert (target / "deep" / "b.bin").read_bytes() == b"\x00b"


@pytest.mark.parametrize("name", ["../evil", "/abs", "a/../../evil"])
def test_a_manifest_cannot_write_outside_its_folder(store: ArtifactStore, tmp_path: Path, name: str) -> None:
    digest = store.put_json({"format": "flywheel-tree-1", "files": {name: store.put(b"x")}})

    with pytest.raises(ArtifactMissing, match="outside"):
        store.materialize(digest, tmp_path / "out")

    assert not (tmp_path / "evil").exists()


def test_a_name_points_at_the_digest_that_was_set_last(store: ArtifactStore) -> None:
    first, second = store.put(b"first"), store.put(b"second")

    assert store.ref_get("packs/checks/sums") is None
    store.ref_set("packs/checks/sums", first)
    store.ref_set("packs/checks/sums", second)
    store.ref_set("packs/checks/words", first)

    assert store.ref_get("packs/checks/sums") == second
    assert store.refs("packs/checks") == {"packs/checks/sums": second, "packs/checks/words": first}
    assert store.refs("nothing/here") == {}


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".hidden"])
def test_a_reference_stays_below_its_folder(store: ArtifactStore, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        store.ref_set(name, "0" * 64)


def test_a_store_in_memory_takes_and_gives_bytes() -> None:
    store = ArtifactStore("memory://artifacts-of-a-test")

    digest = store.put(b"hello")

    assert store.get(digest) == b"hello"


def test_half_a_surrogate_pair_in_one_row_breaks_no_file_and_reads_back(store: ArtifactStore) -> None:
    rows = [{"text": "é"}, {"text": "a\ud800b", "n": 1}, {"text": "after"}]

    digest = store.put_jsonl(rows)

    assert list(store.iter_jsonl(digest)) == rows
    assert store.get(digest).decode().splitlines()[0] == '{"text": "é"}'  # the others are as ever
    assert store.get_json(store.put_json(rows)) == rows
