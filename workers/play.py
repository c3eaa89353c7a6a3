"""The turns of one episode: ask the policy, let the environment act, go on with what is new.

Token in, token out: what the engine sampled is what the trajectory holds, id by id; a later turn's
prompt is the ids held plus the ids of the new messages, nothing is rendered twice. Leaves out what
becomes of the result: that is ``episode.py``.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from domain.contracts import ChatMessage, EngineTarget, Sampling, Step, TaskSpec
from workers.engine.client import ChatCompletion, Completion, EngineError
from workers.environments import MAX_TURNS, Answer, Environment, EnvironmentBroken
from workers.environments.messages import answer_text, from_user, named_calls, shown
from workers.pipeline import Meter
from workers.played import Played
from workers.served_policy import STAND_IN

# What engines say of a prompt that has outgrown the model: vLLM, the pocket server, hosted ones.
_TOO_LONG = re.compile(
    r"maximum (context|model) length|longer than the maximum|context_length|prompt is too long", re.IGNORECASE
)
_BAD_REQUEST = 400


class Policy(Protocol):
    """Who answers: a served model, or a script."""

    @property
    def target(self) -> EngineTarget: ...

    async def prompt_ids(self, task: TaskSpec) -> tuple[int, ...]: ...

    async def tokenize(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, add_generation_prompt: bool = True
    ) -> tuple[int, ...]: ...

    async def stand_in_ids(self, task: TaskSpec) -> tuple[int, ...]: ...

    async def knows_tool_role(self, task: TaskSpec) -> bool: ...

    async def complete(
        self, prompt_ids: Sequence[int], *, max_tokens: int, sampling: Sampling, seed: int
    ) -> Completion: ...

    async def chat(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, sampling: Sampling, seed: int
    ) -> ChatCompletion: ...


class TemplateRefused(RuntimeError):
    """The chat template gives no ids that could follow the sampled ones."""


class NothingMore(Exception):
    """The policy has nothing more to say: the episode ends as it stands."""


class TurnLate(RuntimeError):
    """The engine did not answer a turn in time."""


@dataclass
class Meters:
    """How busy the two sides of a batch's turns are."""

    engine: Meter = field(default_factory=Meter)
    environment: Meter = field(default_factory=Meter)


@dataclass(frozen=True)
class Turn:
    """What holds for every turn of an episode. ``step_s`` bounds the engine's and the environment's
    part of a turn, each; the meters count who is in which part."""

    task: TaskSpec
    policy: Policy
    sampling: Sampling
    seed: int
    environment: Environment
    policy_version: int = 0
    step_s: float | None = None
    meters: Meters = field(default_factory=Meters)


async def play(turn: Turn, played: Played) -> None:
    """Fill ``played`` until the environment says that the episode is over, the answer was cut off or
    the context is full."""
    if turn.policy.target.protocol == "tokens":
        await _play_tokens(turn, played)
    else:
        await _play_chat(turn, played)


async def _play_tokens(turn: Turn, played: Played) -> None:
    task, policy = turn.task, turn.policy
    observed: Sequence[ChatMessage] = turn.environment.observe()
    played.prompt_ids = await policy.prompt_ids(task)
    played.prompt_tokens = len(played.prompt_ids)
    held = list(played.prompt_ids)
    suffix: tuple[int, ...] = ()
    for index in range(MAX_TURNS):
        try:
            async with _answered(turn, index):
                reply = await policy.complete(
                    held, max_tokens=task.max_tokens, sampling=turn.sampling, seed=turn.seed + index
                )
        except EngineError as error:
            if not _ends_as_length(error, played):
                raise
            return
        answer = Answer(reply.text, finish_reason=reply.finish_reason)
        over = await _acted(turn, answer, index) or reply.finish_reason == "length"
        played.answer = answer
        played.steps.append(
            Step(
                observation=shown(observed),
                action=reply.text,
                token_ids=(*suffix, *reply.token_ids),
                logprobs=(*(0.0 for _ in suffix), *reply.logprobs),
                mask=(*(0 for _ in suffix), *(1 for _ in reply.token_ids)),
                policy_version=turn.policy_version,
                finish_reason=reply.finish_reason,
                sandbox=turn.environment.sandbox_log(),
            )
        )
        played.completion_tokens += len(reply.token_ids)
        played.note(reply)
        if over:
            return
        observed = turn.environment.observe()
        if not await policy.knows_tool_role(task):
            observed = from_user(observed)
        if not reply.token_ids:
            raise TemplateRefused("the engine sampled no token, so there is no turn to follow")
        suffix = await _suffix_ids(policy, task, observed, end_token=reply.token_ids[-1])
        held += [*reply.token_ids, *suffix]


async def _suffix_ids(
    policy: Policy, task: TaskSpec, new: Sequence[ChatMessage], *, end_token: int
) -> tuple[int, ...]:
    """Ids that the template puts between the model's end token and its next turn.

    Rendered behind a stand-in conversation, because rendering the real one again could change
    ids that were sampled (spaces, merges, or templates that rewrite history).
    """
    without = await policy.stand_in_ids(task)
    whole = await policy.tokenize([*STAND_IN, *new], task=task)
    if whole[: len(without)] != without or end_token not in without:
        raise TemplateRefused("the chat template cannot be continued token by token")
    end = len(without) - without[::-1].index(end_token)
    return whole[end:]


async def _play_chat(turn: Turn, played: Played) -> None:
    messages = list(turn.environment.observe())
    observed: Sequence[ChatMessage] = messages
    for index in range(MAX_TURNS):
        try:
            async with _answered(turn, index):
                reply = await turn.policy.chat(
                    messages, task=turn.task, sampling=turn.sampling, seed=turn.seed + index
                )
        except NothingMore:
            return
        except EngineError as error:
            if not _ends_as_length(error, played):
                raise
            return
        answer = Answer(reply.text, named_calls(reply.tool_calls), reply.finish_reason)
        over = await _acted(turn, answer, index) or reply.finish_reason == "length"
        played.answer = answer
        played.steps.append(
            Step(
                observation=shown(observed),
                action=answer_text(answer),
                policy_version=turn.policy_version,
                finish_reason=reply.finish_reason,
                sandbox=turn.environment.sandbox_log(),
            )
        )
        played.prompt_tokens += reply.prompt_tokens
        played.completion_tokens += reply.completion_tokens
        played.note(reply)
        if over:
            return
        observed = turn.environment.observe()
        if not answer.tool_calls:  # the model wrote its call as text, so there is no id to reply to
            observed = from_user(observed)
        said = ChatMessage(role="assistant", content=reply.text, tool_calls=list(answer.tool_calls) or None)
        messages += [said, *observed]


@asynccontextmanager
async def _answered(turn: Turn, index: int) -> AsyncIterator[None]:
    """Bounds the engine's part of a turn."""
    try:
        with turn.meters.engine.busy():
            async with asyncio.timeout(turn.step_s):
                yield
    except TimeoutError as error:
        raise TurnLate(f"turn {index + 1}: no answer within {turn.step_s:g} s") from error


async def _acted(turn: Turn, answer: Answer, index: int) -> bool:
    """The environment's part. Programs have limits of their own, so lateness is the host's doing."""
    try:
        with turn.meters.environment.busy():
            async with asyncio.timeout(turn.step_s):
                return await turn.environment.act(answer)
    except TimeoutError as error:
        raise EnvironmentBroken(f"turn {index + 1}: no result within {turn.step_s:g} s") from error


def _ends_as_length(error: EngineError, played: Played) -> bool:
    """Whether the context is full; a first prompt that does not fit is the task's fault, not a length."""
    full = error.status == _BAD_REQUEST and bool(_TOO_LONG.search(error.message))
    if full and played.steps:
        played.cut_off()
        return True
    return False
