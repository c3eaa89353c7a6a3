"""Episodes of several turns: token by token, with tools, limits and deadlines."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from domain.contracts import (
    EngineTarget,
    HiddenCheck,
    Sampling,
    TaskSpec,
    Trajectory,
    VerifierSpec,
)
from tests.workers.engine_fake import BOS, END, START, FakeEngine
from tests.workers.environments.conftest import call, shop, task_in
from workers.engine.client import ChatCompletion, EngineError
from workers.environments import Answer, Environment, EnvironmentBroken, make_environment
from workers.episode import EpisodeJob, generate, in_hidden_sample, judge, result_of
from workers.served_policy import ServedPolicy

LOOK = call("get_order", order="O-1")
REFUND = call("refund_order", order="O-1", amount=59.9, reason="late")
TASK = task_in("tools", state=shop()).model_copy(
    update={
        "verifier": VerifierSpec(kind="end_state", params={"allow": ["/orders/refunds"]}),
        "reference": {"checks": [{"path": "/orders/orders/O-1/refunded", "equals": 59.9}]},
    }
)


async def test_ids_of_an_episode_with_tools_are_those_that_were_sampled_and_held() -> None:
    """trl#5224: prompt + every step's ids is, at each turn, exactly what the engine was asked."""
    engine = _saying(LOOK, REFUND, "Done.")

    done = await _run(engine)

    assert done.state == "passed"
    held = done.prompt_ids
    for prompt, step in zip(engine.prompts, done.steps, strict=True):
        suffix = tuple(i for i, own in zip(step.token_ids, step.mask, strict=True) if not own)
        assert prompt == (*held, *suffix)
        held = (*held, *step.token_ids)
    assert held.count(BOS) == 1


async def test_only_sampled_tokens_are_trained_and_each_turn_ends_with_its_end_token() -> None:
    done = await _run(_saying(LOOK, REFUND, "Done."))

    for step, said in zip(done.steps, (LOOK, REFUND, "Done."), strict=True):
        sampled = [i for i, own in zip(step.token_ids, step.mask, strict=True) if own]
        assert sampled == [*map(ord, said), END]
        assert all(p == 0.0 for p, own in zip(step.logprobs, step.mask, strict=True) if not own)


async def test_the_tools_reply_reaches_the_model_in_the_templates_tool_role() -> None:
    done = await _run(_saying(LOOK, REFUND, "Done."))

    suffix = [i for i, own in zip(done.steps[1].token_ids, done.steps[1].mask, strict=True) if not own]
    text = "".join(map(chr, suffix))
    assert text.startswith(f"\n{chr(START)}tool\n{{")
    assert '"paid": 59.9' in text
    assert done.steps[1].observation.startswith("tool: {")


@pytest.mark.parametrize("silently", [True, False])
async def test_a_template_without_a_tool_role_gets_the_reply_as_a_user_message(silently: bool) -> None:
    engine = _NoToolRole(silently, LOOK, REFUND, "Done.")

    done = await _run(engine)

    assert done.state == "passed"
    assert done.steps[1].observation.startswith("user: Result of the tool:\n{")
    assert "59.9" in "".join(map(chr, engine.prompts[1][len(engine.prompts[0]) :]))


async def test_the_model_is_shown_the_environments_tools() -> None:
    engine = _saying("Done.")
    shown: list[Sequence[Any]] = []
    engine.tokenize = _recording(engine.tokenize, shown)  # type: ignore[method-assign]

    await _run(engine)

    assert "refund_order" in [tool["function"]["name"] for tool in shown[0]]


async def test_a_context_that_is_full_ends_the_episode_as_a_length_stop() -> None:
    engine = _Full(2, LOOK, REFUND)

    done = await _run(engine)

    assert [step.finish_reason for step in done.steps] == ["stop", "length"]
    assert done.state == "passed"  # what was done by then is judged


async def test_a_full_context_in_a_chat_ends_the_same_way() -> None:
    done = await _run(_Full(1, LOOK), protocol="chat")

    assert [step.finish_reason for step in done.steps] == ["length"]
    assert done.state == "failed"


async def test_a_first_prompt_that_does_not_fit_is_an_error() -> None:
    done = await _run(_Full(0))

    assert (done.state, done.reward) == ("error", None)
    assert "maximum context length" in done.error


async def test_a_turn_that_the_engine_never_answers_ends_in_its_deadline() -> None:
    engine = _saying(LOOK, REFUND)
    slow = engine.complete_tokens

    async def complete(**request: Any) -> Any:
        if len(engine.prompts) == 1:
            await asyncio.Event().wait()
        return await slow(**request)

    engine.complete_tokens = complete  # type: ignore[method-assign]

    done = await _run(engine, step_s=0.05)

    assert (done.state, done.reward) == ("error", None)
    assert done.error == "engine: turn 2: no answer within 0.05 s"
    assert len(done.steps) == 1  # what was played stays readable


async def test_an_environment_that_hangs_is_the_hosts_failure() -> None:
    async def hang(answer: Answer) -> bool:
        await asyncio.Event().wait()
        return True

    done = await _run(_saying(LOOK), environment=_With(act=hang), step_s=0.05)

    assert (done.state, done.reward) == ("error", None)
    assert done.error == "environment: turn 1: no result within 0.05 s"


async def test_a_broken_environment_is_an_error_without_reward_and_is_closed() -> None:
    async def broken(answer: Answer) -> bool:
        raise EnvironmentBroken("no sandbox")

    environment = _With(act=broken)

    done = await _run(_saying(LOOK), environment=environment)

    assert (done.state, done.reward, done.error) == ("error", None, "environment: no sandbox")
    assert environment.closed == 1


@pytest.mark.parametrize(
    "params", [{}, {"state": shop(), "max_turns": 99}, {"state": {"now": "2026-03-02T09:00", "orders": {}}}]
)
async def test_a_task_that_makes_no_world_is_an_error_of_its_own_episodes(params: dict[str, Any]) -> None:
    done = await _run(_saying(LOOK), task=TASK.model_copy(update={"environment_params": params}))

    assert (done.state, done.reward) == ("error", None)
    assert done.error.startswith("task: ")


async def test_an_evaluation_stores_all_that_was_said() -> None:
    done = await _run(_saying(REFUND, "Done."))

    assert result_of(done).answer == f"{REFUND}\nDone."


async def test_a_written_call_is_answered_by_a_user_message_in_a_chat() -> None:
    engine = _Chat(LOOK, "Done.")

    await _run(engine, protocol="chat")

    roles = [message["role"] for message in engine.asked[1]]
    assert roles == ["user", "assistant", "user"]
    assert engine.asked[1][2]["content"].startswith("Result of the tool:\n")


async def test_a_real_call_is_answered_under_its_id_in_a_chat() -> None:
    function = {"name": "get_order", "arguments": '{"order": "O-1"}'}
    engine = _Chat([{"id": "c7", "type": "function", "function": function}], "Done.")

    done = await _run(engine, protocol="chat")

    said, reply = engine.asked[1][1:]
    assert said["tool_calls"][0]["id"] == "c7"
    assert (reply["role"], reply["tool_call_id"]) == ("tool", "c7")
    assert '"tool_calls"' in done.steps[0].action


async def test_every_call_of_a_turn_gets_an_answer() -> None:
    function = {"name": "get_order", "arguments": "{}"}
    calls = [{"id": name, "type": "function", "function": function} for name in "ab"]
    engine = _Chat(calls, "Done.")

    await _run(engine, protocol="chat")

    assert [message.get("tool_call_id") for message in engine.asked[1][2:]] == ["a", "b"]


async def test_23_right_form_and_harmless_steps_earn_nothing_without_content() -> None:
    """WildClawBench PR#24: process and format terms are gated on the terminal one."""
    done = await _run(_saying(LOOK, call("get_policy"), "I have refunded the order."))

    assert done.verdict is not None
    assert {check.score for check in done.verdict.checks if check.role in ("format", "process")} == {1.0}
    assert (done.state, done.reward) == ("failed", 0.0)


async def test_rewards_are_ordered_no_op_failed_clumsy_success_clean_success() -> None:
    bad = '{"tool": "get_order"}'
    wrong = call("refund_order", order="O-1", amount=1, reason="late")
    plays = [("",), (wrong, "Done."), (bad, bad, REFUND, "Done."), (LOOK, REFUND, "Done.")]

    rewards = [(await _run(_saying(*play))).reward for play in plays]

    none, failed, clumsy, clean = (reward or 0.0 for reward in rewards)
    assert none == 0.0
    assert failed <= 0.2
    assert 0.6 <= clumsy < clean == 1.0


async def test_harmless_steps_do_not_make_up_for_bad_ones() -> None:
    bad = '{"tool": "get_order"}'

    short = await _run(_saying(bad, REFUND, "Done."))
    padded = await _run(_saying(bad, LOOK, LOOK, LOOK, REFUND, "Done."))

    assert short.reward == padded.reward


async def test_a_pass_that_the_hidden_verifier_fails_is_flagged() -> None:
    hidden = HiddenCheck(verifier=VerifierSpec(kind="trace"), reference={"required": [{"name": "get_order"}]})
    task = TASK.model_copy(update={"hidden": hidden})

    caught = await _run(_saying(REFUND, "Done."), task=task, hidden_share=1.0)
    clean = await _run(_saying(LOOK, REFUND, "Done."), task=task, hidden_share=1.0)
    unseen = await _run(_saying(REFUND, "Done."), task=task, hidden_share=0.0)

    assert caught.state == "passed"
    assert [flag.detector for flag in caught.flags] == ["hidden_verifier"]
    assert "get_order" in caught.flags[0].reason
    assert clean.hidden is not None
    assert clean.hidden.state == "passed"
    assert clean.flags == ()
    assert (unseen.hidden, unseen.flags) == (None, ())


async def test_a_failure_is_never_shown_to_the_hidden_verifier() -> None:
    hidden = HiddenCheck(verifier=VerifierSpec(kind="trace"), reference={"required": [{"name": "get_order"}]})

    done = await _run(_saying("Done."), task=TASK.model_copy(update={"hidden": hidden}), hidden_share=1.0)

    assert (done.state, done.hidden) == ("failed", None)


def test_the_hidden_sample_is_a_fixed_share_of_seeds() -> None:
    hidden = HiddenCheck(verifier=VerifierSpec(kind="exact"), reference="x")
    task = TASK.model_copy(update={"hidden": hidden})
    jobs = [EpisodeJob(task, sample=0, seed=seed) for seed in range(4000)]

    drawn = [in_hidden_sample(job, 0.25) for job in jobs]

    assert drawn == [in_hidden_sample(job, 0.25) for job in jobs]
    assert 0.22 < sum(drawn) / len(drawn) < 0.28
    assert not any(in_hidden_sample(EpisodeJob(TASK, 0, seed), 1.0) for seed in range(9))


async def test_a_passed_canary_is_flagged() -> None:
    task = TASK.model_copy(update={"tags": {"canary": True}})

    done = await _run(_saying(REFUND, "Done."), task=task)

    assert done.state == "passed"
    assert "canary" in done.flags[0].detector


def _saying(*texts: str) -> FakeEngine:
    left = list(texts)
    return FakeEngine(lambda seed: left.pop(0))


class _NoToolRole(FakeEngine):
    """A template that drops messages of the role tool, or refuses them."""

    def __init__(self, silently: bool, *texts: str) -> None:
        left = list(texts)
        super().__init__(lambda seed: left.pop(0))
        self._silently = silently

    async def tokenize(self, *, messages: Sequence[Any], **more: Any) -> tuple[int, ...]:
        known = [message for message in messages if message["role"] != "tool"]
        if len(known) < len(messages) and not self._silently:
            raise EngineError(400, "Only user and assistant roles are supported!", False)
        return await super().tokenize(messages=known, **more)


class _Full(FakeEngine):
    """A context with room for so many turns."""

    def __init__(self, turns: int, *texts: str) -> None:
        left = list(texts)
        super().__init__(lambda seed: left.pop(0))
        self._turns = turns

    async def complete_tokens(self, **request: Any) -> Any:
        self._take_turn()
        return await super().complete_tokens(**request)

    async def chat(self, **request: Any) -> Any:
        self._take_turn()
        return await super().chat(**request)

    def _take_turn(self) -> None:
        if self._turns == 0:
            raise EngineError(400, "This model's maximum context length is 512 tokens.", False)
        self._turns -= 1


class _Chat(FakeEngine):
    """Says texts or makes calls, and remembers what it was asked."""

    def __init__(self, *turns: str | list[dict[str, Any]]) -> None:
        super().__init__()
        self._left = list(turns)
        self.asked: list[list[Mapping[str, Any]]] = []

    async def chat(self, *, messages: Sequence[Any], **request: Any) -> ChatCompletion:
        self.asked.append(list(messages))
        turn = self._left.pop(0)
        return ChatCompletion(
            text=turn if isinstance(turn, str) else "",
            tool_calls=() if isinstance(turn, str) else tuple(turn),
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
            model="base",
            ttft_ms=None,
            latency_ms=1.0,
        )


class _With:
    """The tools environment with another ``act``."""

    def __init__(self, act: Callable[[Answer], Any]) -> None:
        self._inner = make_environment("tools")
        self.act = act
        self.closed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self) -> None:
        self.closed += 1


def _recording(tokenize: Callable[..., Any], shown: list[Sequence[Any]]) -> Callable[..., Any]:
    async def record(**request: Any) -> Any:
        shown.append(request["tools"])
        return await tokenize(**request)

    return record


async def _run(
    engine: FakeEngine,
    *,
    task: TaskSpec = TASK,
    environment: Environment | Any = None,
    protocol: Any = "tokens",
    step_s: float | None = None,
    hidden_share: float = 0.0,
) -> Trajectory:
    target = EngineTarget(base_url="http://engine", model="base", protocol=protocol)
    draft = await generate(
        EpisodeJob(task, sample=0, seed=7, group="g"),
        policy=ServedPolicy(engine, target, pauses_s=(0.0, 0.0)),  # type: ignore[arg-type]
        sampling=Sampling(temperature=1.0),
        environment=environment or make_environment(task.environment),
        step_s=step_s,
    )
    return await judge(draft, collectors={}, hidden_share=hidden_share)
