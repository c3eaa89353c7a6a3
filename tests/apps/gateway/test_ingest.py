"""From the spool to the database: each file by one worker, nothing lost, nothing twice."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from apps.gateway import ingest
from apps.gateway.ingest import spool_ingest
from apps.gateway.spool import host_name

HOST = host_name()


class Database:
    """Stands for ``inferences_ingest``: unique by operation, with rows it refuses and outages."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.calls = 0
        self.down = False

    def inferences_ingest(self, rows: list[dict[str, Any]]) -> int:
        self.calls += 1
        if self.down:
            raise OperationalError("database is gone")
        if any(row["operation"] == "bad" for row in rows):
            raise ValueError("bad row")
        new = [row["operation"] for row in rows if row["operation"] not in self.operations]
        self.operations += new
        return len(new)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    fake = Database()
    monkeypatch.setattr(ingest, "feedback", fake)
    return fake


def spool_file(folder: Path, *operations: str, name: str = "", tail: str = "", age_s: float = 0.0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (name or f"1000-{HOST}-{os.getpid()}-1.jsonl")
    lines = "".join(json.dumps({"operation": op, "project_id": 1}) + "\n" for op in operations)
    path.write_text(lines + tail)
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_closed_file_is_ingested_and_deleted(tmp_path: Path, database: Database) -> None:
    spool_file(tmp_path, "a", "b")

    result = spool_ingest(tmp_path)

    assert database.operations == ["a", "b"]
    assert (result.files, result.rows) == (1, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_holds_nothing(tmp_path: Path, database: Database) -> None:
    assert spool_ingest(tmp_path / "none").files == 0


def test_a_torn_last_line_is_skipped_and_counted(tmp_path: Path, database: Database) -> None:
    spool_file(tmp_path, "a", tail='{"operation": "half')

    result = spool_ingest(tmp_path)

    assert database.operations == ["a"]
    assert result.torn == 1


def test_a_long_file_goes_in_chunks(tmp_path: Path, database: Database) -> None:
    spool_file(tmp_path, *(f"op-{i}" for i in range(1200)))

    spool_ingest(tmp_path)

    assert database.calls == 3
    assert len(database.operations) == 1200


def test_ingesting_twice_is_harmless(tmp_path: Path, database: Database) -> None:
    for _ in range(2):
        spool_file(tmp_path, "a", "b")
        spool_ingest(tmp_path)

    assert database.operations == ["a", "b"]


def test_the_file_stays_while_the_database_is_away(tmp_path: Path, database: Database) -> None:
    path = spool_file(tmp_path, "a")
    database.down = True

    with pytest.raises(OperationalError):
        spool_ingest(tmp_path)

    assert list(tmp_path.iterdir()) == [path]
    database.down = False
    spool_ingest(tmp_path)
    assert database.operations == ["a"]


def test_a_refused_row_is_kept_aside_and_the_others_go_in(tmp_path: Path, database: Database) -> None:
    path = spool_file(tmp_path, "a", "bad", "b")

    result = spool_ingest(tmp_path)

    assert database.operations == ["a", "b"]
    assert result.rejected_by_project == {1: 1}
    (kept,) = tmp_path.iterdir()
    assert kept.name == f"{path.name}.rejected"
    assert json.loads(kept.read_text())["operation"] == "bad"
    assert spool_ingest(tmp_path).files == 0


def test_two_workers_never_take_one_file(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(40):
        spool_file(tmp_path, f"op-{i}", name=f"1000-{HOST}-{os.getpid()}-{i}.jsonl")
    read: list[str] = []
    plain = ingest._read
    monkeypatch.setattr(ingest, "_read", lambda path: (read.append(path.name.split(".")[0]), plain(path))[1])

    threads = [threading.Thread(target=spool_ingest, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(read) == sorted({f"1000-{HOST}-{os.getpid()}-{i}" for i in range(40)})
    assert len(database.operations) == 40


def test_an_open_file_of_a_living_process_is_left_alone(tmp_path: Path, database: Database) -> None:
    spool_file(tmp_path, "a", name=f"1000-{HOST}-{os.getpid()}-1.open")

    assert spool_ingest(tmp_path).files == 0


@pytest.mark.parametrize(
    ("host", "pid", "age_s"),
    [(HOST, None, 0.0), ("elsewhere", 1, 6.0)],
    ids=["its process is gone", "silent for six seconds on another host"],
)
def test_an_open_file_of_a_crashed_process_is_taken(
    tmp_path: Path, database: Database, host: str, pid: int | None, age_s: float
) -> None:
    spool_file(tmp_path, "a", name=f"1000-{host}-{pid or dead_pid()}-1.open", age_s=age_s)

    spool_ingest(tmp_path)

    assert database.operations == ["a"]


@pytest.mark.parametrize("expired", [False, True], ids=["worker is gone", "claim is too old"])
def test_a_claim_that_nobody_works_on_is_recovered(tmp_path: Path, database: Database, expired: bool) -> None:
    claimed_ms = 1000 if expired else time.time_ns() // 1_000_000
    owner = f"elsewhere-{os.getpid()}" if expired else f"{HOST}-{dead_pid()}"
    spool_file(tmp_path, "a", name=f"1000-{HOST}-1-1.jsonl.claim-{claimed_ms}-{owner}-abc")

    spool_ingest(tmp_path)

    assert database.operations == ["a"]
    assert list(tmp_path.iterdir()) == []


def test_a_claim_of_a_living_worker_is_left_alone(tmp_path: Path, database: Database) -> None:
    name = f"1000-{HOST}-1-1.jsonl.claim-{time.time_ns() // 1_000_000}-{HOST}-{os.getpid()}-abc"
    spool_file(tmp_path, "a", name=name)

    assert spool_ingest(tmp_path).files == 0


def test_rows_of_a_killed_gateway_reach_the_database(tmp_path: Path, database: Database) -> None:
    script = (
        "import django, os, signal; django.setup()\n"
        "from pathlib import Path\n"
        "from apps.gateway.spool import Spool\n"
        f"spool = Spool(Path({str(tmp_path)!r}))\n"
        "spool.append({'operation': 'op_1', 'project_id': 1, 'content': {'answer': 'x'}})\n"
        "spool.flush()\n"
        'os.write(spool._file, b\'{"operation": "torn\')\n'
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], check=False)

    result = spool_ingest(tmp_path)

    assert killed.returncode == -9
    assert database.operations == ["op_1"]
    assert result.torn == 1
