"""An environment of several turns around a world with tools: read the action, do it, say what came of it.

Owns what is the same in every such environment: the format of actions, the limit of turns, the
message that goes back, the record of the step. A bad action costs a turn and brings an error message,
it never ends an episode. Leaves out what the tools do: that is the ``World``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from domain.contracts import ChatMessage, SandboxStep, TaskSpec
from domain.steps import BAD_ACTION
from workers.context import UnitRefused
from workers.environments.actions import Action, BadAction, Definition, holds_action, parse_action, tool_name
from workers.environments.protocol import Answer

MAX_TURNS = 16
_DEFAULT_TURNS = 8
_SHOWN = 200
_MOST_CALLS = 8
_TOO_MANY = f"Not done: at most {_MOST_CALLS} calls a turn."


class TaskRefused(UnitRefused):
    """A task's environment parameters do not make a world. The text is for who wrote the task."""


@dataclass(frozen=True)
class Outcome:
    """What one action did. ``reply`` goes back to the model, ``step`` into the trajectory; ``value`` is
    the reply as JSON where there is one, for the trace."""

    reply: str
    step: SandboxStep
    over: bool = False
    value: Any = None


class World(Protocol):
    """What tools act on. Methods raise ``EnvironmentBroken`` where the host's side fails."""

    def tools(self) -> Sequence[Definition]:
        """What is offered, once the world has started."""
        ...

    async def start(self, task: TaskSpec) -> None:
        """Raises ``TaskRefused`` for parameters that make no world."""
        ...

    async def do(self, action: Action) -> Outcome: ...

    def takes_words(self, text: str) -> bool:
        """Whether words without a call are a final answer here; if so the episode is over."""
        ...

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]: ...

    def answer_text(self) -> str: ...

    async def close(self) -> None: ...


class Turns:
    """An ``Environment`` made of a ``World``. ``environment_params["max_turns"]``, at most 16, is how
    many turns there are. Adds the evidence ``trace`` {calls: [{name, arguments, ok, reply}]}."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._new: tuple[ChatMessage, ...] = ()
        self._left = 0
        self._step: SandboxStep | None = None
        self._tools: tuple[Definition, ...] = ()
        self._calls: list[dict[str, Any]] = []

    async def reset(self, task: TaskSpec) -> None:
        self._left = turns_of(task)
        await self._world.start(task)
        self._tools = narrowed(self._world.tools(), task)
        self._new = task.messages

    def observe(self) -> tuple[ChatMessage, ...]:
        new, self._new = self._new, ()
        return new

    async def act(self, answer: Answer) -> bool:
        """The calls of one turn are done one after another; after the one that ends the episode, none."""
        self._left -= 1
        parts = [Answer("", (call,)) for call in answer.tool_calls[:_MOST_CALLS]] or [answer]
        outcomes: list[Outcome] = []
        for part in parts:
            outcomes.append(await self._outcome(part))
            if outcomes[-1].over:
                break
        self._step = joined([outcome.step for outcome in outcomes])
        if outcomes[-1].over or self._left <= 0:
            return True
        replies = [outcome.reply for outcome in outcomes]
        replies += [_TOO_MANY] * (len(answer.tool_calls) - len(replies))
        replies[-1] += "\nOne turn is left." if self._left == 1 else ""
        ids: list[str | None] = [call.get("id") for call in answer.tool_calls] or [None]
        self._new = tuple(
            ChatMessage(role="tool", content=reply, tool_call_id=id)
            for reply, id in zip(replies, ids, strict=True)
        )
        return False

    def sandbox_log(self) -> SandboxStep | None:
        return self._step

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {**await self._world.evidence(), "trace": {"calls": list(self._calls)}}

    def answer_text(self) -> str | None:
        return self._world.answer_text()

    async def close(self) -> None:
        await self._world.close()

    async def _outcome(self, answer: Answer) -> Outcome:
        if not holds_action(answer) and self._world.takes_words(answer.text):
            step = SandboxStep(command="final answer", stdout=answer.text[:_SHOWN])
            return Outcome("", step, over=True)
        try:
            action = parse_action(answer, self._tools)
        except BadAction as error:
            return Outcome(str(error), _unread(answer, str(error)))
        outcome = await self._world.do(action)
        reply = outcome.reply if outcome.value is None else outcome.value
        ok = outcome.step.status == "ok"
        call = {"name": action.tool, "arguments": action.arguments, "ok": ok, "reply": reply}
        self._calls.append(call)
        return outcome


def joined(steps: Sequence[SandboxStep]) -> SandboxStep:
    """The steps of one turn as one: a fault of any is a fault of the turn, and the last workspace counts."""
    if len(steps) == 1:
        return steps[0]
    return SandboxStep(
        command="\n".join(step.command for step in steps),
        status=next((step.status for step in steps if step.status != "ok"), "ok"),
        stdout="\n".join(step.stdout for step in steps if step.stdout),
        stderr="\n".join(step.stderr for step in steps if step.stderr),
        detail="\n".join(step.detail for step in steps if step.detail),
        wall_s=sum(step.wall_s for step in steps),
        user_s=sum(step.user_s for step in steps),
        sys_s=sum(step.sys_s for step in steps),
        maxrss_bytes=max((step.maxrss_bytes for step in steps if step.maxrss_bytes), default=None),
        changes=tuple(change for step in steps for change in step.changes),
        snapshot=steps[-1].snapshot,
        picture=next((step.picture for step in reversed(steps) if step.picture), ""),
    )


def turns_of(task: TaskSpec) -> int:
    """How many turns ``task`` allows: 1 in an environment without turns. Raises ``TaskRefused``."""
    if task.environment == "single_turn":
        return 1
    turns = task.environment_params.get("max_turns", _DEFAULT_TURNS)
    if not isinstance(turns, int) or isinstance(turns, bool) or not 1 <= turns <= MAX_TURNS:
        raise TaskRefused(f"task {task.id}: max_turns must be a whole number from 1 to {MAX_TURNS}")
    return turns


def narrowed(tools: Sequence[Definition], task: TaskSpec) -> tuple[Definition, ...]:
    """Those of ``tools`` that the task names in its own list; all, where it has none. The world's own
    definitions count, whatever the task's say. Raises ``TaskRefused``."""
    if not task.tools:
        return tuple(tools)
    wanted = [tool_name(tool) for tool in task.tools]
    known = {tool_name(tool): tool for tool in tools}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise TaskRefused(f"task {task.id}: environment {task.environment!r} has no tool {missing[0]!r}")
    return tuple(known[name] for name in wanted)


def _unread(answer: Answer, why: str) -> SandboxStep:
    said = answer.text if not answer.tool_calls else str(answer.tool_calls)
    return SandboxStep(command=" ".join(said.split())[:_SHOWN], status=BAD_ACTION, detail=why)
