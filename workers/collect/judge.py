"""Asks judge models: the evidence ``judgements``. The replies are kept as they came; reading them is
the verifier's work.

Judges are engine targets with run-scoped tokens, given to whoever builds the collector: a provider's
key never comes near a worker. A voice that cannot be reached is kept as one; only when too few are
left to decide anything is the whole an infrastructure error, worth another try.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

from domain.contracts import ChatMessage, EngineTarget, TaskSpec
from domain.judge_replies import MAX_REPLY
from domain.judging import judge_messages, label_messages, pairwise_messages
from domain.verifiers import judge, label, pairwise
from domain.verifiers.panel import Voice, content_problem, quorum, turns_of, voices
from workers.engine.client import ChatCompletion, EngineClient, EngineError

_MAX_TOKENS = 700
_AT_ONCE = 8


class _Ask(NamedTuple):
    """One question to one voice. ``order`` is the judged answer's place where two are compared."""

    voice: Voice
    repeat: int
    order: str
    messages: tuple[ChatMessage, ...]


def judge_collector(
    targets: Mapping[str, EngineTarget],
) -> Callable[[TaskSpec, str], Awaitable[Mapping[str, Any]]]:
    """A collector that asks ``targets``, by the names that verifiers call them; "" is who is asked where
    a verifier names no model. Raises ``ValueError`` without a target."""
    if not targets:
        raise ValueError("a collector of judgements needs at least one judge")

    async def collect(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        params = task.verifier.params
        unknown = sorted({model for _, model in voices(params)} - targets.keys())
        if unknown:
            return {"status": "unavailable", "detail": f"There is no judge {unknown[0]!r} here."}
        if _settled_unasked(task, answer):
            return {"status": "ok", "judgements": []}
        gate = asyncio.Semaphore(_AT_ONCE)
        calls = [_entry(targets[ask.voice[1]], ask, params, gate) for ask in _asks(task, answer)]
        judgements = list(await asyncio.gather(*calls))
        lost = {(entry["prompt"], entry["model"]): entry["error"] for entry in judgements if "error" in entry}
        if len(voices(params)) - len(lost) < quorum(params):
            return {"status": "infra_error", "detail": f"judge: {next(iter(lost.values()))}"[:500]}
        return {"status": "ok", "judgements": judgements}

    return collect


def _settled_unasked(task: TaskSpec, answer: str) -> bool:
    """Whether the verifier decides without any judge: nothing is there to judge, or nothing to compare."""
    kind = {"label": label, "pairwise": pairwise}.get(task.verifier.kind, judge)
    if content_problem(task, answer, kind.MIN_WORDS):
        return True
    return kind is pairwise and pairwise.same_text(answer, task.reference)


def _asks(task: TaskSpec, answer: str) -> Iterator[_Ask]:
    params, question = task.verifier.params, turns_of(task)
    for voice in voices(params):
        asked: dict[str, Any] = {"prompt": voice[0], "question": question, "criteria": params["criteria"]}
        if task.verifier.kind == "label":
            said = {"": label_messages(**asked, answer=answer, labels=params["labels"])}
        elif task.verifier.kind == "pairwise":
            said = {
                "first": pairwise_messages(**asked, first=answer, second=task.reference),
                "second": pairwise_messages(**asked, first=task.reference, second=answer),
            }
        else:
            said = {"": judge_messages(**asked, answer=answer, threshold=judge.threshold_of(params))}
        for repeat in range(params.get("repeats", 1)):
            for order, messages in said.items():
                yield _Ask(voice, repeat, order, messages)


async def _entry(
    target: EngineTarget, ask: _Ask, params: Mapping[str, Any], gate: asyncio.Semaphore
) -> dict[str, Any]:
    prompt, model = ask.voice
    entry: dict[str, Any] = {"prompt": prompt, "model": model, "repeat": ask.repeat}
    if ask.order:
        entry["order"] = ask.order
    try:
        async with gate:
            reply = await _reply(target, ask, params)
    except EngineError as error:
        return {**entry, "error": str(error)[:300]}
    tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
    return {**entry, "reply": reply.text[-MAX_REPLY:], "served_model": reply.model, **tokens}


async def _reply(target: EngineTarget, ask: _Ask, params: Mapping[str, Any]) -> ChatCompletion:
    async with EngineClient(target.base_url, target.token, target.timeout_s) as engine:
        return await engine.chat(
            model=target.model,
            messages=[message.model_dump(exclude_none=True) for message in ask.messages],
            max_tokens=_MAX_TOKENS,
            temperature=0.0 if params.get("repeats", 1) == 1 else 0.3,
            seed=ask.repeat,
            stream=False,
        )
