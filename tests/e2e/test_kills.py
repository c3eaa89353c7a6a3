"""Each process of the running stack is killed once, while work goes on: it comes back, and nothing
is lost or done twice."""

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest

from tests.e2e.places import holds_anything
from tests.e2e.stack import PROGRAMS, RunningStack
from tests.e2e.work import Work, engine_models, serve_adapter, start_training
from tests.waiting import until

pytestmark = pytest.mark.e2e

BACK_S = 600.0
FINISH_S = 900.0
# The gateway writes its rows every 200 ms, beside the data path: what it wrote last may die with it. On a
# machine that is busy with killed processes those 200 ms are seconds.
SPOOL_LAG_S = 10.0
ENGINES = {"engine-standard": 11, "engine-highspeed": 12}
# Those that hold work are killed while they do: queues whose unit must be running then.
HOLDING = {"worker-train": ("train",), "worker-heavy": ("eval", "rollout")}
ORDER = (*HOLDING, *(program for program in PROGRAMS if program not in HOLDING))


@dataclass
class Ordeal:
    """What happened while every program was killed once."""

    work: Work
    training: int
    came_back: list[str] = field(default_factory=list)
    killed_web_at: float = 0.0
    interrupted: dict[str, int] = field(default_factory=dict)  # program -> the unit that it held
    models_after: dict[str, list[str]] = field(default_factory=dict)
    adapter: str = ""


@pytest.fixture(scope="module")
def ordeal(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Ordeal:
    return undergo(stack, tmp_path_factory.mktemp("adapter") / "lora")


def undergo(stack: RunningStack, folder: Any) -> Ordeal:
    with stack.client() as client:
        until(lambda: _all_run(stack), what="every program runs", timeout_s=BACK_S, every_s=0.3)
        _wait_for_idle_gauntlet(stack)
        adapter = serve_adapter(stack, client, folder)["adapter_name"]
        for port in ENGINES.values():
            _wait_for_adapter(stack, port, adapter)
        work = Work(stack)
        done = Ordeal(work, start_training(client, work.base, work.tag), adapter=adapter)
        with work:
            work.wait_for_more()
            for program in ORDER:
                _kill(stack, program, done)
                work.wait_for_more(timeout_s=BACK_S)
                if program in ENGINES:
                    done.models_after[program] = _wait_for_adapter(stack, ENGINES[program], adapter)
        ended = ("done", "failed", "cancelled")
        for run in work.runs:
            client.wait(f"/runs/{run}", lambda row: row["state"] in ended, timeout_s=FINISH_S)
        client.wait(f"/training/runs/{done.training}", lambda row: row["state"] in ended, timeout_s=FINISH_S)
        until(lambda: _is_drained(stack, work), what="captures are anonymized", timeout_s=FINISH_S, every_s=1)
        client.post("/rollback", {"reason": "The test with the drawn adapter is over."})
    return done


def test_every_process_comes_back(ordeal: Ordeal, stack: RunningStack):
    assert ordeal.came_back == list(ORDER)
    until(lambda: _all_run(stack), what="every program runs", timeout_s=BACK_S, every_s=0.3)


def test_clients_saw_no_wrong_answer(ordeal: Ordeal):
    """Refusals to connect and "in a moment" are waited out; anything else would be a fault."""
    assert ordeal.work.errors == []


def test_runs_finish_with_every_result_once(ordeal: Ordeal, stack: RunningStack):
    assert ordeal.work.runs
    for run in ordeal.work.runs:
        state, total = stack.rows("SELECT state, total FROM evals_run WHERE id = ?", run)[0]
        results = stack.rows("SELECT case_id, sample, state FROM evals_result WHERE run_id = ?", run)

        assert state == "done"
        assert len(results) == len({(case, sample) for case, sample, _ in results}) == total
        assert {state for _, _, state in results} <= {"passed", "failed"}


def test_training_goes_on_where_it_was(ordeal: Ordeal, stack: RunningStack):
    state, steps, version, error = stack.rows(
        "SELECT state, steps, version_id, error FROM training_trainingrun WHERE id = ?", ordeal.training
    )[0]
    segments = stack.value(
        "SELECT count(*) FROM training_segment WHERE run_id = ? AND state = 'done'", ordeal.training
    )

    assert (state, error) == ("done", "")
    assert segments == steps
    assert version is not None


def test_interrupted_units_were_done_by_another_attempt(ordeal: Ordeal, stack: RunningStack):
    """Or the kill came in the moment after the unit was done: then its report must have arrived."""
    for unit in ordeal.interrupted.values():
        assert stack.value("SELECT state FROM core_workunit WHERE id = ?", unit) == "done"
    assert set(ordeal.interrupted) == set(HOLDING)


def test_acknowledged_captures_are_anonymized_once(ordeal: Ordeal, stack: RunningStack):
    sent = ordeal.work.acknowledged
    rows = stack.rows(
        "SELECT c.external_id, c.state, count(f.id) FROM feedback_capture c "
        "LEFT JOIN feedback_failurecase f ON f.capture_id = c.id WHERE c.external_id LIKE ? GROUP BY c.id",
        f"{ordeal.work.tag}-%",
    )

    assert len(sent) > 10
    assert len(sent) == len(set(sent))
    assert set(sent) <= {external_id for external_id, _, _ in rows}
    assert len(rows) == len({external_id for external_id, _, _ in rows})
    assert {(state, cases) for _, state, cases in rows} == {("anonymized", 1)}


def test_answered_requests_are_recorded_once(ordeal: Ordeal, stack: RunningStack):
    rows = [row[0] for row in stack.rows("SELECT operation FROM feedback_inference")]
    killed = ordeal.killed_web_at
    unexplained = [
        operation
        for operation, (asked, answered) in ordeal.work.answered.items()
        if operation not in rows and not asked <= killed <= answered + SPOOL_LAG_S
    ]

    assert len(ordeal.work.answered) > 20
    assert len(rows) == len(set(rows))
    assert unexplained == []


def test_engines_get_their_adapters_back(ordeal: Ordeal):
    assert set(ordeal.models_after) == set(ENGINES)
    assert all(ordeal.adapter in models for models in ordeal.models_after.values())


def test_no_unit_of_work_is_left_open_or_failed(ordeal: Ordeal, stack: RunningStack):
    owners = [f"evals.run:{run}" for run in ordeal.work.runs] + [f"training.run:{ordeal.training}"]
    marks = ",".join("?" * len(owners))
    query = f"SELECT state, count(*) FROM core_workunit WHERE owner IN ({marks}) GROUP BY state"
    states = dict(stack.rows(query, *owners))

    assert set(states) == {"done"}


def _kill(stack: RunningStack, program: str, done: Ordeal) -> None:
    """Kill it as the kernel does when memory runs out, and wait for its successor."""
    before = stack.programs()[program]["pid"]
    if program in HOLDING:
        done.interrupted[program] = until(
            lambda: _running_unit(stack, HOLDING[program]),
            what=f"{program} is at work", timeout_s=FINISH_S, every_s=0.02,
        )  # fmt: skip
    victim = psutil.Process(before)
    if program == "web":
        done.killed_web_at = time.monotonic()
    os.kill(before, signal.SIGKILL)

    def successor() -> bool:
        row = stack.programs()[program]
        return row["statename"] == "RUNNING" and row["pid"] not in (0, before)

    until(successor, what=f"{program} comes back", timeout_s=BACK_S, every_s=0.3)
    done.came_back.append(program)
    assert not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE


def _running_unit(stack: RunningStack, queues: tuple[str, ...]) -> int:
    marks = ",".join("?" * len(queues))
    query = f"SELECT id FROM core_workunit WHERE state = 'running' AND queue IN ({marks}) LIMIT 1"
    rows = stack.rows(query, *queues)
    return int(rows[0][0]) if rows else 0


def _all_run(stack: RunningStack) -> bool:
    return all(row["statename"] == "RUNNING" for row in stack.programs().values())


def _wait_for_idle_gauntlet(stack: RunningStack) -> None:
    """The first start checks its verifiers; training waits for that."""
    query = "SELECT count(*) FROM feedback_verifier WHERE admission = 'unchecked'"
    until(lambda: stack.value(query) == 0, what="the verifiers are checked", timeout_s=FINISH_S, every_s=1)


def _wait_for_adapter(stack: RunningStack, port: int, adapter: str) -> list[str]:
    address = f"http://127.0.0.1:{stack.port + port}"

    def models() -> list[str]:
        found = engine_models(address)
        return found if adapter in found else []

    return until(models, what=f"the engine at {address} holds {adapter}", timeout_s=BACK_S, every_s=0.3)


def _is_drained(stack: RunningStack, work: Work) -> bool:
    raw = stack.value("SELECT count(*) FROM feedback_capture WHERE state = 'raw'")
    return raw == 0 and not holds_anything(stack.data / "spool")
