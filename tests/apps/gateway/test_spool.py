"""Rows on their way to the disk: encrypted, flushed together, rotated, and counted when lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apps.core.crypto import decrypt_json
from apps.gateway import spool as spool_module
from apps.gateway.spool import Spool, spool_state
from tests.waiting import until


def row(operation: str, **more: Any) -> dict[str, Any]:
    return {"operation": operation, "project_id": 1, "content": None, **more}


def operations(folder: Path) -> list[str]:
    return [json.loads(line)["operation"] for path in sorted(folder.iterdir()) for line in path.open()]


def test_text_is_encrypted_before_it_is_written(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(row("op_1", content={"answer": "Jane Roe"}))

    spool.flush(rotate=True)

    (path,) = tmp_path.iterdir()
    assert "Jane Roe" not in path.read_text()
    assert decrypt_json(json.loads(path.read_text())["content"].encode()) == {"answer": "Jane Roe"}
    assert path.stat().st_mode & 0o077 == 0


def test_the_thread_writes_by_itself_and_closes_the_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.start()
    spool.append(row("op_1"))

    until(lambda: list(tmp_path.glob("*.jsonl")), what="a closed file")

    assert operations(tmp_path) == ["op_1"]
    spool.stop()


def test_a_file_takes_rows_until_it_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    monkeypatch.setattr(spool_module, "ROTATE_AFTER_ROWS", 3)

    for i in range(4):
        spool.append(row(f"op_{i}"))
        spool.flush()

    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".jsonl", ".open"]
    assert operations(tmp_path) == ["op_0", "op_1", "op_2", "op_3"]


def test_a_full_disk_loses_rows_counts_them_and_leaves_no_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.append(row("op_1"))
    spool.flush()
    write = os.write

    def full(descriptor: int, data: Any) -> int:
        if len(data) > 10:
            return write(descriptor, bytes(data[:10]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool_module.os, "write", full)
    spool.append(row("op_2"))
    spool.append(row("op_3", project_id=2))
    spool.flush()
    monkeypatch.setattr(spool_module.os, "write", write)
    spool.append(row("op_4"))
    spool.flush(rotate=True)

    assert operations(tmp_path) == ["op_1", "op_4"]
    assert spool.lost == 2
    assert spool.lost_by_project == {1: 1, 2: 1}


def test_a_slow_disk_bounds_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "WAITING_LIMIT", 2)
    spool = Spool(tmp_path)

    for i in range(3):
        spool.append(row(f"op_{i}"))

    assert (spool.waiting(), spool.lost) == (2, 1)


def test_rows_written_into_a_file_that_was_taken_go_into_a_new_one_too(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(row("op_1"))
    spool.flush()
    (opened,) = spool.folder.iterdir()
    opened.rename(tmp_path / "taken")

    spool.append(row("op_2"))
    spool.flush(rotate=True)

    assert operations(spool.folder) == ["op_2"]


def test_a_row_that_is_no_json_costs_only_itself(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(row("op_1", latency_ms=float("nan")))
    spool.append(row("op_2"))

    spool.flush(rotate=True)

    assert operations(tmp_path) == ["op_2"]
    assert spool.lost == 1


def test_state_counts_files_bytes_and_age(tmp_path: Path) -> None:
    assert spool_state(tmp_path / "none") == {"files": 0, "bytes": 0, "oldest_s": None}
    spool = Spool(tmp_path)
    spool.append(row("op_1"))
    spool.flush()

    state = spool_state(tmp_path)

    assert state["files"] == 1
    assert state["bytes"] > 0
    assert 0 <= state["oldest_s"] < 3600
