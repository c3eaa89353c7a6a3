import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from domain.contracts import (
    ChatMessage,
    EngineTarget,
    Sampling,
    SandboxStep,
    TaskSpec,
    Trajectory,
    VerifierSpec,
)
from domain.seeds import episode_seed
from tests.workers.engine_fake import BOS, END, START, FakeEngine
from workers.engine.client import EngineError
from workers.environments import Answer, UnknownEnvironment, make_environment
from workers.episode import EpisodeJob, lost, result_of, run_episode
from workers.evidence import Collector
from workers.served_policy import ServedPolicy

EXACT = TaskSpec(
    id="t",
    family="f",
    messages=(ChatMessage(role="user", content="6 * 7?"),),
    verifier=VerifierSpec(kind="exact"),
    reference="42",
)
PYTHON = EXACT.model_copy(
    update={
        "verifier": VerifierSpec(kind="python_tests", params={"entry_point": "f"}),
        "reference": {"calls": [{"args": [], "expected": 42}]},
    }
)


async def test_a_right_answer_passes_with_the_full_reward() -> None:
    done = await _run(FakeEngine(lambda seed: "42"))

    assert (done.state, done.reward) == ("passed", 1.0)
    assert done.verdict is not None


async def test_a_wrong_answer_fails_with_a_small_reward() -> None:
    done = await _run(FakeEngine(lambda seed: "41"))

    assert done.state == "failed"
    assert done.reward is not None
    assert done.reward <= 0.2


async def test_tokens_are_kept_as_the_engine_sampled_them() -> None:
    engine = FakeEngine(lambda seed: "42")

    done = await _run(engine)

    assert done.prompt_ids == engine.prompts[0]
    assert done.steps[0].token_ids == (ord("4"), ord("2"), END)
    assert done.steps[0].logprobs == (-0.25,) * 3
    assert done.steps[0].mask == (1, 1, 1)


async def test_exactly_one_first_token_starts_a_prompt() -> None:
    """alignment-handbook#127, trl#3520: the engine's template is the only place that adds one."""
    done = await _run(FakeEngine())

    assert done.prompt_ids.count(BOS) == 1


async def test_a_tool_loop_keeps_its_ids_end_to_end() -> None:
    """trl#5224: a second turn's prompt is the ids held, the ids sampled and the new messages' ids."""
    engine = FakeEngine(lambda seed: "12" if not engine.prompts[1:] else "42")

    done = await _run(engine, environment=_Twice())

    first, second = done.steps
    tool = (ord("\n"), START, *map(ord, "tool\nthirty"), END, ord("\n"), START, *map(ord, "assistant\n"))
    assert engine.prompts[1] == (*engine.prompts[0], *first.token_ids, *tool)
    assert second.token_ids == (*tool, ord("4"), ord("2"), END)
    assert second.mask == (0,) * len(tool) + (1, 1, 1)
    assert second.logprobs[: len(tool)] == (0.0,) * len(tool)
    assert done.state == "passed"


async def test_each_turn_draws_with_a_seed_of_its_own() -> None:
    engine = FakeEngine()

    await _run(engine, environment=_Twice())

    assert len(set(engine.seeds)) == 2


async def test_an_answer_that_was_cut_off_ends_the_episode() -> None:
    engine = FakeEngine()
    engine.finish_reason = "length"

    done = await _run(engine, environment=_Twice())

    assert len(done.steps) == 1
    assert done.steps[0].finish_reason == "length"


async def test_an_engine_that_stays_away_is_an_error_without_reward() -> None:
    engine = FakeEngine()
    engine.failures = [EngineError(0, "connection refused", True)] * 10

    done = await _run(engine)

    assert (done.state, done.reward, done.verdict) == ("error", None, None)
    assert done.error == "engine unreachable: connection refused"


async def test_an_answer_of_another_model_is_an_error() -> None:
    """ms-swift#9855: a request without the adapter is refused, not trained on."""
    engine = FakeEngine()
    engine.serves_as = "another"

    done = await _run(engine)

    assert (done.state, done.reward) == ("error", None)


@pytest.mark.parametrize("status", ["nonzero", "signal", "timeout", "cpu", "oom", "output_limit"])
async def test_a_program_that_dies_after_its_start_has_failed(status: str) -> None:
    done = await _run(FakeEngine(), task=PYTHON, collectors=_reporting({"status": status, "calls": []}))

    assert done.state == "failed"
    assert done.reward is not None


async def test_a_sandbox_that_breaks_down_is_an_error_without_reward() -> None:
    report = {"status": "infra_error", "calls": [], "detail": "no space left"}

    done = await _run(FakeEngine(), task=PYTHON, collectors=_reporting(report))

    assert (done.state, done.reward) == ("error", None)
    assert "no space left" in done.error
    assert done.verdict is not None
    assert done.verdict.state == "unscored"


async def test_a_sandbox_that_breaks_down_once_is_asked_again() -> None:
    good = {"status": "ok", "calls": [{"status": "ok", "value": 42, "error": ""}]}

    done = await _run(FakeEngine(), task=PYTHON, collectors=_reporting({"status": "infra_error"}, good))

    assert done.state == "passed"


@pytest.mark.parametrize("collectors", [{}, None])
async def test_a_missing_sandbox_leaves_the_answer_unscored(collectors: dict[str, Collector] | None) -> None:
    if collectors is None:
        collectors = _reporting({"status": "unavailable", "calls": [], "detail": "no user namespaces"})

    done = await _run(FakeEngine(), task=PYTHON, collectors=collectors)

    assert (done.state, done.reward) == ("unscored", None)


async def test_a_part_of_a_composed_verifier_gets_its_evidence() -> None:
    part = {"kind": "python_tests", "params": {"entry_point": "g"}, "reference": PYTHON.reference}
    task = EXACT.model_copy(
        update={"verifier": VerifierSpec(kind="all", params={"parts": [{"kind": "exact"}, part]})}
    )
    asked: list[TaskSpec] = []

    async def collect(narrowed: TaskSpec, answer: str) -> Mapping[str, Any]:
        asked.append(narrowed)
        return {"status": "ok", "calls": [{"status": "ok", "value": 42, "error": ""}]}

    done = await _run(FakeEngine(), task=task, collectors={"python_calls": collect})

    assert asked[0].verifier.params == {"entry_point": "g"}
    assert done.state == "passed"


async def test_chat_endpoints_are_judged_by_their_text() -> None:
    done = await _run(FakeEngine(), protocol="chat")

    assert done.state == "passed"
    assert done.steps[0].token_ids == ()
    assert (done.ttft_ms, done.latency_ms, done.prompt_tokens) == (3.0, 9.0, 7)


async def test_a_result_is_what_an_evaluation_stores() -> None:
    result = result_of(await _run(FakeEngine()))

    assert result.model_dump(exclude={"verdict", "flags", "latency_ms", "prompt_tokens", "ttft_ms"}) == {
        "task_id": "t",
        "sample": 2,
        "state": "passed",
        "score": 1.0,
        "answer": "42",
        "error": "",
        "completion_tokens": 3,
        "per_token_ms": None,
        "attempts": 1,
        "cached": False,
        "turns_digest": "",
        "turns_line": 0,
        "served_model": "base",
    }


def test_a_lost_episode_says_where_and_after_how_long() -> None:
    done = lost(EpisodeJob(EXACT, sample=1, seed=5, group="g"), "judging", deadline_s=12)

    assert (done.state, done.reward, done.error) == (
        "error",
        None,
        "lost while judging: no result within 12 s",
    )


def test_seeds_are_unique_over_tasks_samples_and_engines() -> None:
    """verl PR#5179: two engines that share a run's seed draw differently."""
    seeds = {
        episode_seed(run, f"task-{task}", sample, salt=salt)
        for run in range(2)
        for task in range(50)
        for sample in range(8)
        for salt in ("", "1:a")
    }

    assert len(seeds) == 2 * 50 * 8 * 2
    assert max(seeds) < 2**53
    assert episode_seed(1, "a", 0) == episode_seed(1, "a", 0)


def test_an_unknown_environment_is_refused_by_name() -> None:
    with pytest.raises(UnknownEnvironment, match=r"unknown environment 'moon'; known: coding, .*tools"):
        make_environment("moon")


class _Twice:
    """An environment of two turns with a tool's answer between them."""

    def __init__(self) -> None:
        self._turn = 0

    async def reset(self, task: TaskSpec) -> None:
        self._new: tuple[ChatMessage, ...] = task.messages

    def observe(self) -> tuple[ChatMessage, ...]:
        return self._new

    async def act(self, answer: Answer) -> bool:
        self._turn += 1
        self._new = (ChatMessage(role="tool", content="thirty"),)
        return self._turn == 2

    def sandbox_log(self) -> SandboxStep | None:
        return SandboxStep(command=f"turn {self._turn}")

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def answer_text(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def _reporting(*reports: dict[str, Any]) -> dict[str, Collector]:
    """A sandbox that reports these one after the other, the last one for ever."""
    left = list(reports)

    async def collect(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        return left.pop(0) if len(left) > 1 else left[0]

    return {"python_calls": collect}


async def _run(
    engine: FakeEngine,
    *,
    task: TaskSpec = EXACT,
    environment: Any = None,
    collectors: dict[str, Collector] | None = None,
    protocol: str = "tokens",
) -> Trajectory:
    target = EngineTarget(base_url="http://engine", model="base", protocol=protocol)
    return await run_episode(
        task,
        policy=ServedPolicy(engine, target, pauses_s=(0.0, 0.0)),
        sampling=Sampling(temperature=1.0),
        sample=2,
        seed=7,
        environment=environment or make_environment(task.environment),
        collectors=collectors or {},
    )
