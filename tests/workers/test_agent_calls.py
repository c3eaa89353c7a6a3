"""Agents at an endpoint that calls tools itself: over HTTP, in several turns, judged on what was done."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from domain.contracts import EngineTarget, EpisodeResult, RunEvalBatch, Sampling, TaskSpec, VerifierSpec
from tests.endpoints import Calls, ChatEndpoint, Refusal
from tests.workers.conftest import FakeContext
from tests.workers.environments.conftest import shop, task_in
from workers.evals import run_eval_batch

Turn = str | Calls


class Agent(ChatEndpoint):
    """Says its turns one after another, a text or calls. ``refuses`` native calls as vLLM without a
    parser for them does."""

    def __init__(self, turns: Callable[[list[dict[str, Any]]], Turn]) -> None:
        self.refuses = False
        self._turns = turns
        super().__init__(self._says)

    def _says(self, body: dict[str, Any]) -> Turn | Refusal:
        if self.refuses and body.get("tool_choice") == "auto":
            return Refusal(400, '"auto" tool choice requires --enable-auto-tool-choice', None)
        return self._turns(body["messages"])


REFUND = ("refund_order", {"order": "O-1", "amount": 59.9, "reason": "late"})


def _dutiful(messages: list[dict[str, Any]]) -> Turn:
    """Looks, then refunds and closes in one turn, then says so."""
    answered = sum(message["role"] == "tool" for message in messages)
    if answered == 0:
        return [("get_order", {"order": "O-1"})]
    if answered == 1:
        return [REFUND, ("close_ticket", {"ticket": "T-1", "resolution": "refunded"})]
    return "You have your money back."


def _writing(messages: list[dict[str, Any]]) -> Turn:
    """The same with calls as text."""
    answered = sum("Result of the tool" in str(message["content"]) for message in messages)
    if answered == 0:
        return json.dumps({"tool": REFUND[0], "arguments": REFUND[1]})
    return "Done."


@pytest.fixture
def agent() -> Iterator[Callable[[Any], Agent]]:
    made: list[Agent] = []

    def build(turns: Any) -> Agent:
        made.append(Agent(turns))
        return made[-1]

    yield build
    for one in made:
        one.stop()


def _task(**reference: Any) -> TaskSpec:
    return task_in("tools", state=shop()).model_copy(
        update={"verifier": VerifierSpec(kind="trace"), "reference": {"required": [], **reference}}
    )


def _evaluate(ctx: FakeContext, task: TaskSpec, url: str) -> EpisodeResult:
    message = RunEvalBatch(
        tasks_digest=ctx.store.put_jsonl([task.model_dump(mode="json")]),
        indexes=(0,),
        sampling=Sampling(),
        target=EngineTarget(base_url=url, model="m", protocol="chat", native_tools=True),
    )
    result = run_eval_batch(message, ctx)
    (row,) = ctx.store.iter_jsonl(result.results_digest)
    return EpisodeResult.model_validate(row)


def test_an_agent_calls_tools_natively_and_several_in_a_turn(
    ctx: FakeContext, agent: Callable[[Any], Agent]
) -> None:
    serving = agent(_dutiful)
    task = _task(required=[{"name": "refund_order", "arguments": {"order": "O-1"}}, {"name": "close_ticket"}])

    result = _evaluate(ctx, task, serving.url)

    assert result.state == "passed", (result.error, result.verdict)
    assert [body["tool_choice"] for body in serving.asked] == ["auto"] * 3
    history = serving.asked[-1]["messages"]
    assert [message["role"] for message in history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]
    assert [call["id"] for call in history[3]["tool_calls"]] == [m["tool_call_id"] for m in history[4:]]


def test_two_equal_calls_are_two_calls(ctx: FakeContext, agent: Callable[[Any], Agent]) -> None:
    half = ("refund_order", {"order": "O-1", "amount": 20, "reason": "late"})
    serving = agent(lambda messages: "Done." if messages[-1]["role"] == "tool" else [half, half])
    wanted = {"name": "refund_order", "arguments": {"amount": 20}}

    assert _evaluate(ctx, _task(required=[{**wanted, "times": 2}]), serving.url).state == "passed"
    once = _evaluate(ctx, _task(required=[wanted]), serving.url)
    assert once.state == "failed"
    assert once.verdict is not None
    assert "more often than asked" in once.verdict.reasons[0]


def test_an_endpoint_that_takes_no_calls_is_asked_for_calls_as_text(
    ctx: FakeContext, agent: Callable[[Any], Agent]
) -> None:
    serving = agent(_writing)
    serving.refuses = True

    result = _evaluate(ctx, _task(required=[{"name": "refund_order"}]), serving.url)

    assert result.state == "passed", (result.error, result.verdict)
    assert [body["tool_choice"] for body in serving.asked] == ["auto", "none", "none"]


def test_tools_expected_and_none_called_is_not_a_pass(
    ctx: FakeContext, agent: Callable[[Any], Agent]
) -> None:
    serving = agent(lambda messages: "I refunded it.")

    result = _evaluate(ctx, _task(required=[{"name": "refund_order"}]), serving.url)

    assert (result.state, result.score) == ("failed", 0.0)


def test_what_an_agent_did_turn_by_turn_is_kept_beside_its_result(
    ctx: FakeContext, agent: Callable[[Any], Agent]
) -> None:
    result = _evaluate(ctx, _task(required=[{"name": "refund_order"}]), agent(_dutiful).url)

    turns = list(ctx.store.iter_jsonl(result.turns_digest))[result.turns_line]

    assert [turn["sandbox"]["status"] for turn in turns] == ["ok", "ok", "ok"]
    assert turns[1]["sandbox"]["command"].startswith("refund_order")
    assert [change["path"] for change in turns[1]["sandbox"]["changes"]] == ["orders.json", "tickets.json"]
    assert "token_ids" not in turns[0]
