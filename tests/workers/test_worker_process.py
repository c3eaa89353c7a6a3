"""A real worker process on the embedded broker: it reports, keeps texts out of its log, and stops."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from artifacts import ArtifactStore
from tests.waiting import GUARD_S
from workers.celery import broker_options

ROOT = Path(__file__).resolve().parents[2]
SECRET = "Ada Lovelace 4111 1111 1111 1111"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Celery]:
    """The web side: it sends to the worker and listens to its own queue."""
    app = Celery("web", set_as_current=False)
    app.conf.update(**broker_options({"FLYWHEEL_DATA": str(tmp_path)}), task_ignore_result=True)
    yield app
    app.close()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "FLYWHEEL_DATA": str(tmp_path),
        "FLYWHEEL_ARTIFACTS": f"file://{tmp_path}/artifacts",
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("FLYWHEEL_BROKER_URL", None)
    command = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "--pool", "solo"]
    command += ["-Q", "rollout,eval", "--loglevel", "info", "--without-gossip", "--without-mingle"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    yield process
    process.kill()
    process.wait()


def receive(web: Celery, count: int, within_s: float = GUARD_S) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = []
    deadline = time.monotonic() + within_s
    with web.connection_for_read() as connection, connection.SimpleQueue("web") as queue:
        while len(reports) < count and time.monotonic() < deadline:
            try:
                message = queue.get(timeout=0.5)
            except queue.Empty:
                continue
            message.ack()
            assert message.headers["task"] == "core.unit_report"
            report = message.payload[0][0]
            if report["type"] != "UnitHeartbeat":
                reports.append(report)
    return reports


def test_a_worker_reports_and_its_log_and_folders_hold_no_text(
    web: Celery, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    unit = {"unit_id": 7, "attempt": 1, "kind": "eval_batch"}
    target = {"base_url": "http://127.0.0.1:1", "model": "none"}
    payload = {"tasks_digest": "0" * 64, "indexes": [0], "sampling": {}, "target": target}
    for args in (
        [{**unit, "payload": {"prompt": SECRET}}],
        [{"prompt": SECRET}],
        [SECRET, SECRET],
        [{**unit, "unit_id": 8, "payload": payload}],
    ):
        web.send_task("workers.run_unit", args=args, queue="eval")
    web.send_task("workers.unheard_of", args=[SECRET], queue="rollout")
    (tmp_path / "broker" / "eval" / "00000000000000000000-1-1.msg").write_text("{")

    reports = receive(web, 3)

    assert [(report["type"], report["unit_id"]) for report in reports] == [
        ("UnitFailed", 7),
        ("UnitStarted", 8),
        ("UnitFailed", 8),
    ]
    assert reports[2]["error"].startswith("ArtifactMissing at artifacts.store:")
    assert reports[2]["retryable"] is False
    log = (tmp_path / "log").read_text()
    assert "unit 8 attempt 1 failed" in log
    assert not any(word in log for word in ("Ada", "Lovelace", "4111"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=GUARD_S) == 0
    left = [path for path in (tmp_path / "broker").rglob("*") if path.is_file()]
    assert [path.parent.name for path in left] == ["rejected"]


def test_a_worker_asked_to_stop_hands_its_unit_back_and_ends(
    web: Celery, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    task = {
        "id": "t1",
        "family": "f",
        "messages": [{"role": "user", "content": SECRET}],
        "verifier": {"kind": "exact"},
        "reference": "x",
    }
    digest = ArtifactStore(f"file://{tmp_path}/artifacts").put_jsonl([task])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = {"base_url": f"http://127.0.0.1:{silent.getsockname()[1]}", "model": "none"}
        payload = {"tasks_digest": digest, "indexes": [0], "sampling": {}, "target": target}
        unit = {"unit_id": 9, "attempt": 1, "kind": "eval_batch", "payload": payload}
        web.send_task("workers.run_unit", args=[unit], queue="eval")
        silent.settimeout(GUARD_S)
        asked, _ = silent.accept()  # the unit now waits for an engine that never answers
        with asked:
            worker.send_signal(signal.SIGTERM)
            code = worker.wait(timeout=GUARD_S)

    reports = receive(web, 2)

    assert code == 0
    assert [report["type"] for report in reports] == ["UnitStarted", "UnitFailed"]
    assert reports[1]["retryable"] is True
    assert reports[1]["error"].startswith("UnitStopped at ")
    assert "Lovelace" not in (tmp_path / "log").read_text()
