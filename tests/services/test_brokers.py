"""A real worker on the brokers of production: it takes a unit and reports, as on the embedded one."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from artifacts import ArtifactStore
from tests.waiting import GUARD_S
from workers.celery import broker_options

pytestmark = pytest.mark.services

ROOT = Path(__file__).resolve().parents[2]
REDIS = os.environ.get("TEST_REDIS", "redis://127.0.0.1:6379/9")
RABBITMQ = os.environ.get("TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")


@pytest.fixture
def alone() -> Iterator[None]:
    """The machine's brokers hold queues of fixed names: one run of the tests at a time uses them."""
    with (Path(tempfile.gettempdir()) / "flywheel-test-brokers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(params=[REDIS, RABBITMQ], ids=["redis", "rabbitmq"])
def web(request: pytest.FixtureRequest, alone: None) -> Iterator[Celery]:
    app = Celery("web", set_as_current=False)
    app.conf.update(**broker_options({"FLYWHEEL_BROKER_URL": request.param}), task_ignore_result=True)
    with app.connection_for_write() as connection:
        for name in ("web", "eval", "rollout"):
            connection.SimpleQueue(name).clear()
    yield app
    app.close()


def test_a_unit_goes_out_and_its_reports_come_back(web: Celery, tmp_path: Path) -> None:
    store = ArtifactStore(f"file://{tmp_path}/artifacts")
    task = {
        "id": "t", "family": "f", "messages": [{"role": "user", "content": "2+2?"}],
        "verifier": {"kind": "exact"}, "reference": "4",
    }  # fmt: skip
    items = store.put_jsonl([{"task": task, "answer": "4"}, {"task": task, "answer": "5"}])
    environment = {
        **os.environ,
        "FLYWHEEL_DATA": str(tmp_path),
        "FLYWHEEL_ARTIFACTS": store.url,
        "FLYWHEEL_BROKER_URL": str(web.conf.broker_url),
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "workers.celery",
        "worker",
        "--pool",
        "solo",
        "-Q",
        "eval",
    ]
    unit = {
        "unit_id": uuid.uuid4().int % 10**9, "attempt": 1, "kind": "verify_batch",
        "payload": {"items_digest": items, "repeats": 2},
    }  # fmt: skip

    with open(tmp_path / "log", "wb") as stream:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=stream, stderr=stream)
    try:
        web.send_task("workers.run_unit", args=[unit], queue="eval")
        reports = _reports(web, unit["unit_id"])
    finally:
        process.terminate()
        process.wait(timeout=GUARD_S)

    assert [report["type"] for report in reports] == ["UnitStarted", "UnitFinished"], (
        tmp_path / "log"
    ).read_text()
    assert reports[-1]["result"]["counts"] == {"passed": 2, "failed": 2}


def _reports(web: Celery, unit_id: int, within_s: float = GUARD_S) -> list[dict[str, Any]]:
    """Reports on the unit until it has ended; heartbeats left out."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + within_s
    with web.connection_for_read() as connection, connection.SimpleQueue("web") as queue:
        while time.monotonic() < deadline:
            try:
                message = queue.get(timeout=0.5)
            except queue.Empty:
                continue
            message.ack()
            report = message.payload[0][0]
            if report["unit_id"] == unit_id and report["type"] != "UnitHeartbeat":
                found.append(report)
            if report["type"] in ("UnitFinished", "UnitFailed"):
                break
    return found
