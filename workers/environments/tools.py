"""Tool use: the mock services of ``domain/services`` behind an agent's tools.

``environment_params``: ``state`` (see ``domain/services``), optionally ``tools`` (names, to offer fewer)
and ``max_turns``. Words without a call are the agent's final answer. Evidence: ``end_state`` {state}.
Needs no sandbox: no code runs.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import SandboxStep, TaskSpec
from domain.services import SERVICES, State, call, definitions, offered
from workers.environments.actions import Action, Definition
from workers.environments.changes import text_changes
from workers.environments.turns import Outcome, TaskRefused
from workers.environments.workspace import cut

_REPLY_CHARS = 4000
_COMMAND_CHARS = 2000


class ToolServices:
    """A ``World`` whose state is one JSON document."""

    def __init__(self) -> None:
        self._state: State = {}
        self._tools: tuple[Definition, ...] = ()
        self._answer = ""

    def tools(self) -> Sequence[Definition]:
        return self._tools

    async def start(self, task: TaskSpec) -> None:
        self._state, self._tools = _state_of(task), definitions_of(task)

    async def do(self, action: Action) -> Outcome:
        before = self._state
        try:
            reply = call(before, action.tool, action.arguments)
        except (KeyError, TypeError, AttributeError) as error:
            # The arguments fit the tool's schema: what does not fit is the state that the task brought.
            raise TaskRefused(f"the task's state has another shape than its service: {error!r}") from error
        self._state = reply.state
        said = reply.value if isinstance(reply.value, str) else _json(reply.value)
        said = cut(said, _REPLY_CHARS)
        step = SandboxStep(
            command=cut(f"{action.tool} {_json(action.arguments)}", _COMMAND_CHARS),
            status="ok" if reply.ok else "refused",
            stdout=said if reply.ok else "",
            stderr="" if reply.ok else said,
            changes=text_changes(_documents(before), _documents(self._state)) if reply.ok else (),
        )
        return Outcome(said if reply.ok else f"Error: {said}", step, value=reply.value)

    def takes_words(self, text: str) -> bool:
        self._answer = text
        return True

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {"end_state": {"state": dict(self._state)}}

    def answer_text(self) -> str:
        return self._answer

    async def close(self) -> None:
        return None


def definitions_of(task: TaskSpec) -> tuple[Definition, ...]:
    """The tools that a task of this environment offers. Raises ``TaskRefused``."""
    state, only = _state_of(task), task.environment_params.get("tools", ())
    missing = [name for name in only if name not in offered(state)]
    if missing:
        raise TaskRefused(f"task {task.id}: no service in its state has a tool {missing[0]!r}")
    return definitions(state, only)


def _state_of(task: TaskSpec) -> State:
    state = task.environment_params.get("state")
    if not isinstance(state, Mapping) or not isinstance(state.get("now"), str):
        raise TaskRefused(f'task {task.id}: environment_params["state"] must be an object with "now"')
    if not state.keys() & SERVICES.keys():
        raise TaskRefused(f"task {task.id}: its state has none of {', '.join(SERVICES)}")
    return state


def _documents(state: State) -> dict[str, str]:
    """Each service's part as a document that a person can read."""
    return {
        f"{name}.json": json.dumps(state[name], indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        for name in SERVICES
        if name in state
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
