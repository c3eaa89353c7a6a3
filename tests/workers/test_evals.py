from typing import Any

import pytest

from domain.contracts import EngineTarget, EpisodeResult, EvalBatchResult, RunEvalBatch, Sampling, TaskSpec
from packs.starter import tasks as starter
from tests.workers.conftest import FakeContext
from tests.workers.environments.conftest import task_in
from workers.environments import ENVIRONMENTS, EnvironmentBroken
from workers.environments.documents import Documents
from workers.environments.turns import Turns
from workers.evals import run_eval_batch


def test_results_follow_the_selected_cases_and_samples(ctx: FakeContext, engine_url: str) -> None:
    result = _evaluate(ctx, engine_url, indexes=(3, 0), sampling=Sampling(temperature=1.0, samples=2))

    names = [task.id for task in starter.generate("invoice_fields", seed=1, count=5)]
    rows = _rows(ctx, result)
    assert [(row.task_id, row.sample) for row in rows] == [
        (names[3], 0),
        (names[3], 1),
        (names[0], 0),
        (names[0], 1),
    ]


def test_counts_say_how_many_cases_ended_in_each_state(ctx: FakeContext, engine_url: str) -> None:
    result = _evaluate(ctx, engine_url, indexes=range(5))

    rows = _rows(ctx, result)
    assert sum(result.counts.values()) == 5
    assert set(result.counts) <= {"passed", "failed"}
    assert result.counts.get("passed", 0) == sum(row.state == "passed" for row in rows)
    assert all(row.served_model == "pocket" and row.completion_tokens > 0 for row in rows)


def test_answers_at_temperature_zero_repeat(ctx: FakeContext, engine_url: str) -> None:
    first, second = (_rows(ctx, _evaluate(ctx, engine_url, indexes=range(5))) for _ in range(2))

    assert [row.answer for row in first] == [row.answer for row in second]


def test_chat_gives_the_answers_of_tokens(ctx: FakeContext, engine_url: str) -> None:
    by_tokens = _rows(ctx, _evaluate(ctx, engine_url, indexes=range(5)))
    by_chat = _rows(ctx, _evaluate(ctx, engine_url, indexes=range(5), protocol="chat"))

    assert [row.answer for row in by_chat] == [row.answer for row in by_tokens]
    assert all(row.ttft_ms is not None for row in by_chat)


def test_an_unknown_model_is_an_error_of_every_case(ctx: FakeContext, engine_url: str) -> None:
    result = _evaluate(ctx, engine_url, indexes=range(3), model="nobody")

    assert result.counts == {"error": 3}
    assert "nobody" in _rows(ctx, result)[0].error


def test_functions_are_judged_in_the_sandbox(ctx: FakeContext, engine_url: str) -> None:
    result = _evaluate(ctx, engine_url, indexes=range(4), family="python_functions")

    # Where the host forbids sandboxes the answers are unscored, never passed or failed.
    assert set(result.counts) <= {"passed", "failed"} or result.counts == {"unscored": 4}
    assert ("sandbox_checkouts" in result.pipeline) == ("unscored" not in result.counts)


@pytest.mark.parametrize("protocol", ["tokens", "chat"])
def test_an_agent_is_evaluated_over_several_turns(ctx: FakeContext, engine_url: str, protocol: str) -> None:
    """The pocket model knows no such task: each of its turns is answered, and the end is judged."""
    task = task_in("documents", pages=["Total 7"], max_turns=3)
    message = RunEvalBatch(
        tasks_digest=ctx.store.put_jsonl([task.model_dump(mode="json")]),
        indexes=(0,),
        sampling=Sampling(samples=2),
        target=EngineTarget(base_url=engine_url, model="pocket", protocol=protocol),
    )

    result = run_eval_batch(message, ctx)

    assert result.counts == {"failed": 2}
    assert all(row.answer.count("\n") <= 2 and row.score == 0.0 for row in _rows(ctx, result))
    assert result.pipeline["environment_busy_share"] < result.pipeline["engine_busy_share"]


@pytest.mark.parametrize(("breaks", "counts"), [(1, {"failed": 1}), (2, {"error": 1})])
def test_a_broken_environment_is_tried_once_more(
    ctx: FakeContext, engine_url: str, monkeypatch: pytest.MonkeyPatch, breaks: int, counts: dict[str, int]
) -> None:
    left = ["no sandbox"] * breaks

    class Breaking(Documents):
        async def start(self, task: TaskSpec) -> None:
            if left:
                raise EnvironmentBroken(left.pop())
            await super().start(task)

    monkeypatch.setitem(ENVIRONMENTS, "documents", lambda: Turns(Breaking()))
    task = task_in("documents", pages=["Total 7"], max_turns=1)
    message = RunEvalBatch(
        tasks_digest=ctx.store.put_jsonl([task.model_dump(mode="json")]),
        indexes=(0,),
        sampling=Sampling(),
        target=EngineTarget(base_url=engine_url, model="pocket"),
    )

    assert run_eval_batch(message, ctx).counts == counts


def test_progress_is_reported(ctx: FakeContext, engine_url: str) -> None:
    _evaluate(ctx, engine_url, indexes=range(5))

    assert ctx.reports[0]["total"] == 5
    assert ctx.reports[0]["done"] >= 1


def _evaluate(
    ctx: FakeContext,
    url: str,
    *,
    indexes: Any,
    sampling: Sampling | None = None,
    family: str = "invoice_fields",
    model: str = "pocket",
    protocol: str = "tokens",
) -> EvalBatchResult:
    tasks = starter.generate(family, seed=1, count=5)
    message = RunEvalBatch(
        tasks_digest=ctx.store.put_jsonl(task.model_dump(mode="json") for task in tasks),
        indexes=tuple(indexes),
        sampling=sampling or Sampling(),
        target=EngineTarget(base_url=url, model=model, protocol=protocol),
    )
    return run_eval_batch(message, ctx)


def _rows(ctx: FakeContext, result: EvalBatchResult) -> list[EpisodeResult]:
    return [EpisodeResult.model_validate(row) for row in ctx.store.iter_jsonl(result.results_digest)]
