"""Whole episodes in the real sandbox: a script or an engine says the turns, everything else is as in a
worker."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from artifacts import ArtifactStore
from domain.contracts import EngineTarget, Sampling, TaskSpec, Trajectory, VerifierSpec
from tests.workers.engine_fake import END, FakeEngine
from tests.workers.environments.conftest import call, task_in
from workers.environments import make_environment
from workers.episode import Draft, EpisodeJob, generate, judge, lost
from workers.evidence import sandbox_collectors
from workers.pipeline import Pipeline
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.protocol import Limits, SandboxSpec, Snapshot
from workers.sandbox.replay import replay_step
from workers.sandbox.worker_pool import worker_pool
from workers.scripted import ScriptedPolicy, play_solution
from workers.served_policy import ServedPolicy

BROKEN = "def add(a, b):\n    return a - b\n"
TEST = """\
import unittest

from calc import add


class Adds(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)
"""
HIDDEN = "from calc import add\n\n\ndef test_more():\n    assert add(5, 7) == 12\n"
FILES = {"calc.py": BROKEN, "tests/__init__.py": "", "tests/test_calc.py": TEST}
TASK = task_in(
    "coding",
    files=FILES,
    run="python -m unittest discover -s tests -t .",
    protected=["tests/test_calc.py"],
    run_timeout_s=60,
).model_copy(
    update={
        "verifier": VerifierSpec(kind="repo_tests", params={"sources": ["*.py"]}),
        "reference": {
            "files": {"calc.py": BROKEN},
            "shown": {"tests/test_calc.py": TEST},
            "tests": {"checks/test_hidden.py": HIDDEN},
            "ids": ["checks/test_hidden.py::test_more"],
        },
    }
)
PATIENT = Limits(wall_s=60.0, cpu_s=30)  # the machine may be busy with other tests
REPAIR = call("replace_in_file", path="calc.py", old="a - b", new="a + b")
TURNS = (call("run"), REPAIR, call("run"), call("submit"))


@pytest.fixture(autouse=True, scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtifactStore]:
    """Where snapshots go; the pool's sandboxes end with the last test."""
    url = f"file://{tmp_path_factory.mktemp('live')}/artifacts"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLYWHEEL_ARTIFACTS", url)
        yield ArtifactStore(url)
        worker_pool().close()


def test_a_repair_is_found_by_reading_the_errors_and_judged_in_fresh_sandboxes(
    own_store: ArtifactStore,
) -> None:
    done = _scripted(TURNS)

    steps = [step.sandbox for step in done.steps if step.sandbox]
    assert (done.state, done.reward, done.flags) == ("passed", 1.0, ()), done.verdict
    assert [step.status for step in steps] == ["nonzero", "ok", "ok", "ok"]
    assert "AssertionError: -1 != 3" in done.steps[1].observation
    assert [change.path for change in steps[1].changes] == ["calc.py"]
    assert steps[0].snapshot != steps[1].snapshot == steps[2].snapshot
    assert steps[0].wall_s > 0
    _replays_the_same(own_store, steps[1].snapshot, done)


def test_what_runs_in_a_sandbox_cannot_make_its_tests_pass() -> None:
    """The visible tests are rewritten by a program, not by an edit; hidden ones judge the source."""
    weaken = "python -c \"open('tests/test_calc.py', 'w').write('')\""

    done = _scripted((call("run", command=weaken), call("run"), call("submit")))

    assert (done.state, done.reward) == ("failed", 0.0)
    assert done.verdict is not None
    assert any(check.name == "tests untouched" and check.score == 0.0 for check in done.verdict.checks)
    assert [change.path for step in done.steps if step.sandbox for change in step.sandbox.changes] == [
        "tests/test_calc.py"
    ]


def test_hidden_tests_are_nowhere_in_the_workspace() -> None:
    roots = ("/workspace", "/tmp", "/dev/shm", "/home", "/var", "/run")
    walk = f"[f for root in {roots} for _, _, names in os.walk(root) for f in names]"
    search = f'python -c "import os; print({walk})"'

    done = _scripted((call("run", command=search), call("submit")))

    assert done.steps[0].sandbox is not None
    assert "test_calc.py" in done.steps[0].sandbox.stdout
    assert "test_hidden" not in done.steps[0].sandbox.stdout


def test_doing_nothing_fails_with_nothing() -> None:
    done = _scripted((call("submit"),))

    assert (done.state, done.reward) == ("failed", 0.0)


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signal"),
        ("import os; [os.kill(n, 9) for n in (1, -1)]", None),
        ("print('x' * 10**8)", "output_limit"),
        ("raise SystemExit(3)", "nonzero"),
    ],
)
def test_a_program_that_ends_badly_is_a_step_and_no_error(program: str, status: str | None) -> None:
    done = _scripted((call("run", command=f'python -c "{program}"'), REPAIR, call("submit")))

    assert done.state == "passed"  # the repair counts, whatever ran before
    assert done.steps[0].sandbox is not None
    assert status in (None, done.steps[0].sandbox.status)


def test_an_engines_tokens_are_kept_through_a_real_workspace() -> None:
    """trl#5224, with programs between the turns."""
    left = list(TURNS)
    engine = FakeEngine(lambda seed: left.pop(0))

    done = asyncio.run(_played_by(engine))

    assert done.state == "passed"
    held = done.prompt_ids
    for prompt, step, said in zip(engine.prompts, done.steps, TURNS, strict=True):
        suffix = tuple(i for i, own in zip(step.token_ids, step.mask, strict=True) if not own)
        assert prompt == (*held, *suffix)
        assert step.token_ids == (*suffix, *map(ord, said), END)
        held = (*held, *step.token_ids)


def test_a_part_is_made_measured_and_made_right() -> None:
    task = task_in("modelling", constraints={"volume": 6000, "extents": [10, 20, 30]}).model_copy(
        update={
            "verifier": VerifierSpec(kind="geometry"),
            "reference": {"script": "part = box(10, 20, 30)"},
        }
    )
    scripts = ("part = bx(1)", "part = box(10, 10, 10)", "part = box(10, 20, 30)")

    done = _scripted((*(call("run_script", code=code) for code in scripts), call("submit")), task=task)

    said = [step.observation for step in done.steps[1:]]
    assert "NameError: name 'bx' is not defined (line 1)" in said[0]
    assert "The volume is 1000 mm³, not 6000." in said[1]
    assert "All visible constraints hold." in said[2]
    assert (done.state, done.reward) == ("passed", 1.0)


def test_an_episode_that_its_deadline_ends_gives_its_sandbox_back() -> None:
    """Ended in the middle of a program: the pool is at full strength again, and the loss is on record."""
    turns = (call("run", command="python -c 'import time; time.sleep(50)'"),)

    async def make(job: EpisodeJob) -> Draft:
        return await generate(
            job,
            policy=ScriptedPolicy(turns),
            sampling=Sampling(),
            environment=make_environment("coding"),
        )

    async def never(draft: Draft) -> Trajectory:
        raise AssertionError("nothing is left to judge")

    pipeline = Pipeline(
        generate=make,
        judge=never,
        lose=lambda job, stage: lost(job, stage, deadline_s=1.0),
        concurrency=3,
        deadline_s=1.0,
    )

    results, metrics = asyncio.run(pipeline.run([EpisodeJob(TASK, n, n) for n in range(3)]))

    assert [(done.state, done.reward) for done in results] == [("error", None)] * 3
    assert metrics.lost == 3
    assert worker_pool().stats().leased == 0


def _scripted(turns: tuple[str, ...], *, task: TaskSpec = TASK) -> Trajectory:
    async def play() -> Trajectory:
        return await play_solution(task, turns, collectors=sandbox_collectors(worker_pool(), limits=PATIENT))

    return asyncio.run(play())


async def _played_by(engine: FakeEngine) -> Trajectory:
    target: Any = EngineTarget(base_url="http://engine", model="base")
    draft = await generate(
        EpisodeJob(TASK, sample=0, seed=7, group="g"),
        policy=ServedPolicy(engine, target),  # type: ignore[arg-type]
        sampling=Sampling(temperature=1.0),
        environment=make_environment("coding"),
        step_s=60.0,
    )
    return await judge(draft, collectors=sandbox_collectors(worker_pool(), limits=PATIENT))


def _replays_the_same(store: ArtifactStore, before: str, done: Trajectory) -> None:
    step = done.steps[2].sandbox
    assert step is not None

    async def replay() -> tuple[str, ...]:
        spec = SandboxSpec()
        return (await replay_step(BubblewrapBackend(), Snapshot(before), step, spec=spec)).differences

    differences = asyncio.run(replay())
    # The test run prints how long it took; all else must come out the same.
    assert all("Ran 1 test in" in said for said in differences), json.dumps(differences)
