"""Tools that answer as they did before: calls and replies that were recorded, and what they changed.

For agents whose real tools cannot be run here. ``TaskSpec.tools`` defines the tools.
``environment_params``: ``recorded`` [{name, arguments, match, reply, ok, sets}], ``state`` (any object),
``unknown`` (what a call that was never recorded gets) and ``max_turns``. A call gets the first recorded
reply to it that was not given yet, then the last one again. ``arguments`` must be equal, with ``match``
"some" only those that are named. ``sets`` {JSON pointer: value} changes the state each time. Words
without a call are the final answer. Evidence: ``end_state`` {state}.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from domain.contracts import SandboxStep, TaskSpec
from domain.json_paths import with_value
from domain.verifiers.tool_call import json_equal
from workers.environments.actions import Action, Definition, tool_name
from workers.environments.changes import text_changes
from workers.environments.turns import Outcome, TaskRefused
from workers.environments.workspace import cut

_REPLY_CHARS, _COMMAND_CHARS, _MOST = 20_000, 2000, 500
_UNKNOWN = "Error: nothing was recorded for this call."
_SCHEMA = {
    "type": "object",
    "properties": {
        "recorded": {
            "type": "array",
            "minItems": 1,
            "maxItems": _MOST,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "arguments": {"type": "object"},
                    "match": {"enum": ["all", "some"]},
                    "reply": {},
                    "ok": {"type": "boolean"},
                    "sets": {"type": "object", "propertyNames": {"pattern": "^/"}},
                },
                "required": ["name", "reply"],
                "additionalProperties": False,
            },
        },
        "state": {"type": "object"},
        "unknown": {"type": "string", "minLength": 1},
        "max_turns": {},
    },
    "required": ["recorded"],
    "additionalProperties": False,
}


class Recorded:
    """A ``World`` that only repeats."""

    def __init__(self) -> None:
        self._tools: tuple[Definition, ...] = ()
        self._entries: list[Mapping[str, Any]] = []
        self._given: set[int] = set()
        self._state: dict[str, Any] = {}
        self._unknown = _UNKNOWN
        self._answer = ""

    def tools(self) -> Sequence[Definition]:
        return self._tools

    async def start(self, task: TaskSpec) -> None:
        self._tools = definitions_of(task)
        params = task.environment_params
        self._entries = list(params["recorded"])
        self._state = dict(params.get("state", {}))
        self._unknown = params.get("unknown", _UNKNOWN)

    async def do(self, action: Action) -> Outcome:
        found = self._find(action)
        command = cut(f"{action.tool} {_text(action.arguments)}", _COMMAND_CHARS)
        if found is None:
            return Outcome(
                self._unknown, SandboxStep(command=command, status="refused", stderr=self._unknown)
            )
        before, self._state = self._state, changed(self._state, found.get("sets", {}))
        ok, value = found.get("ok", True), found["reply"]
        said = cut(value if isinstance(value, str) else _text(value), _REPLY_CHARS)
        step = SandboxStep(
            command=command,
            status="ok" if ok else "refused",
            stdout=said if ok else "",
            stderr="" if ok else said,
            changes=text_changes(_document(before), _document(self._state)),
        )
        return Outcome(said, step, value=value)

    def takes_words(self, text: str) -> bool:
        self._answer = text
        return True

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {"end_state": {"state": self._state}}

    def answer_text(self) -> str:
        return self._answer

    async def close(self) -> None:
        return None

    def _find(self, action: Action) -> Mapping[str, Any] | None:
        fitting = [index for index, entry in enumerate(self._entries) if _fits(entry, action)]
        if not fitting:
            return None
        index = next((index for index in fitting if index not in self._given), fitting[-1])
        self._given.add(index)
        return self._entries[index]


def definitions_of(task: TaskSpec) -> tuple[Definition, ...]:
    """The task's own tools. Raises ``TaskRefused`` for a recording that does not fit them."""
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(_SCHEMA).iter_errors(task.environment_params)
    )
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "environment_params"
        raise TaskRefused(f"task {task.id}: {place}: {error.message[:200]}")
    names = [tool_name(tool) for tool in task.tools]
    if not all(names) or len(set(names)) < len(names):
        raise TaskRefused(f"task {task.id}: its tools need names, each once")
    for entry in task.environment_params["recorded"]:
        if entry["name"] not in names:
            raise TaskRefused(f"task {task.id}: {entry['name']!r} was recorded, but is none of its tools")
        changed(task.environment_params.get("state", {}), entry.get("sets", {}), task.id)
    return tuple(task.tools)


def changed(state: Mapping[str, Any], sets: Mapping[str, Any], task_id: str = "") -> dict[str, Any]:
    """``state`` with the values at the given pointers set. Raises ``TaskRefused``."""
    made = dict(state)
    for pointer, value in sets.items():
        try:
            made = with_value(made, pointer, value)
        except ValueError as error:
            raise TaskRefused(f"task {task_id}: sets {pointer}: {error}") from error
    return made


def _fits(entry: Mapping[str, Any], action: Action) -> bool:
    wanted = entry.get("arguments", {})
    if entry["name"] != action.tool:
        return False
    if entry.get("match", "all") == "all":
        return json_equal(action.arguments, wanted)
    return all(
        key in action.arguments and json_equal(action.arguments[key], value) for key, value in wanted.items()
    )


def _document(state: Mapping[str, Any]) -> dict[str, str]:
    return {"state.json": json.dumps(state, indent=1, ensure_ascii=False, sort_keys=True) + "\n"}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
