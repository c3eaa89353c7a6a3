"""One run through all that can happen to it: its worker is killed, it is paused and resumed, the whole
installation is stopped and started. Nothing is lost, nothing counted twice."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from clients.flywheel import Client
from packs.registry import pack_named
from tests.e2e.stack import RunningStack
from tests.waiting import until

pytestmark = pytest.mark.e2e

CASES, SAMPLES = 150, 4
WAIT_S = 900.0


def test_a_run_outlives_its_worker_a_pause_and_a_stop_of_everything(data: Path):
    first = RunningStack(data)
    try:
        with first.client() as client:
            run = _start(client)
            until(lambda: _stored(first, run) > 0, what="a first batch is stored", timeout_s=WAIT_S)
            killed = _kill_worker(first)
            assert client.post(f"/runs/{run}/pause")["state"] == "paused"
            until(lambda: _is_back(first, killed), what="the worker comes back", timeout_s=WAIT_S)
            until(lambda: _in_flight(first, run) == 0, what="what was sent is over", timeout_s=WAIT_S)
            held = _stored(first, run)
            assert 0 < held < CASES * SAMPLES
            assert client.post(f"/runs/{run}/resume")["state"] == "running"
            until(lambda: _stored(first, run) > held, what="the run goes on", timeout_s=WAIT_S)
        first.stop()
    finally:
        first.kill()

    again = RunningStack(data)
    try:
        with again.client() as client:
            ended = client.wait(f"/runs/{run}", lambda row: row["state"] != "running", timeout_s=WAIT_S)
        rows = again.rows(
            "SELECT case_id, sample, state, completion_tokens FROM evals_result WHERE run_id = ?", run
        )
        assert ended["state"] == "done"
        assert len(rows) == len({(case, sample) for case, sample, *_ in rows}) == CASES * SAMPLES
        states = Counter(state for _, _, state, _ in rows)
        assert {state: ended["score"][state] for state in states} == dict(states)
        assert ended["figures"]["completion_tokens"] == sum(tokens for *_, tokens in rows)
        assert sum(row["score"]["total"] for row in _families(again, run)) == CASES * SAMPLES
        again.stop()
    finally:
        again.kill()


def _start(client: Client) -> int:
    """A run in batches so small that it is never over before something happens to it."""
    tasks = [
        task.model_dump(mode="json", exclude_defaults=True)
        for task in pack_named("starter").generate("invoice_fields", seed=5, count=CASES, reserved=True)
    ]
    suite = client.post("/suites", {"name": "Outlived"})
    cases = {"tasks": tasks, "keep_personal_data": True}  # nobody's: stored without a worker
    version = client.post(f"/suites/{suite['id']}/versions", cases)["id"]
    base = next(row for row in client.get("/versions") if row["parent_id"] is None)["id"]
    body = {
        "suite_version_id": version, "version_id": base, "batch_size": 2, "samples": SAMPLES,
        "temperature": 1.0, "concurrency": 2,
    }  # fmt: skip
    return int(client.post("/runs", body)["id"])


def _kill_worker(stack: RunningStack) -> int:
    pid = int(stack.programs()["worker-heavy"]["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


def _is_back(stack: RunningStack, killed: int) -> bool:
    row = stack.programs()["worker-heavy"]
    return row["statename"] == "RUNNING" and row["pid"] not in (0, killed)


def _stored(stack: RunningStack, run: int) -> int:
    return int(stack.value("SELECT count(*) FROM evals_result WHERE run_id = ?", run))


def _in_flight(stack: RunningStack, run: int) -> int:
    query = "SELECT count(*) FROM core_workunit WHERE owner = ? AND state IN ('sent', 'running')"
    return int(stack.value(query, f"evals.run:{run}"))


def _families(stack: RunningStack, run: int) -> list[dict[str, dict[str, int]]]:
    with stack.client() as client:
        found: list[dict[str, dict[str, int]]] = client.get(f"/runs/{run}/slices")
        return found
