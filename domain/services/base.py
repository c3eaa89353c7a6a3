"""What a mock service is: a pure state machine behind tools.

A service gets the whole state, a tool's name and its arguments, and returns a new state and a reply;
it never changes what it was given. Time is ``state["now"]`` and stands still, so that the same calls
end in the same state. Rules that the agent has to know and apply (refunds within 30 days, office
hours) lie in the state as data and are not enforced; only what cannot be is refused.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = Any
State = Mapping[str, Json]


class Refused(Exception):
    """The call is impossible; the text is what the caller gets to read."""


@dataclass(frozen=True)
class Reply:
    """``state`` is the whole state after the call, the same object where nothing changed. ``value`` is
    JSON: the answer, or the reason in words where ``ok`` is False."""

    ok: bool
    value: Json
    state: State


# Changes the state it is given, which is a copy, and returns the answer; raises ``Refused``.
Handler = Callable[[dict[str, Json], Mapping[str, Json]], Json]


@dataclass(frozen=True)
class Tool:
    """``properties`` is JSON schema by argument; those not in ``optional`` are required."""

    name: str
    description: str
    handler: Handler
    properties: Mapping[str, Json]
    optional: frozenset[str] = frozenset()
    changes: bool = False  # False: it only reads

    def definition(self) -> dict[str, Json]:
        """In OpenAI format."""
        parameters = {
            "type": "object",
            "properties": dict(self.properties),
            "required": [name for name in self.properties if name not in self.optional],
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Service:
    """``name`` is the key of its part of the state."""

    name: str
    tools: tuple[Tool, ...]


def call_tool(tool: Tool, state: State, arguments: Mapping[str, Json]) -> Reply:
    """One call. ``arguments`` have been checked against the tool's schema."""
    after = copy.deepcopy(dict(state)) if tool.changes else dict(state)
    try:
        value = tool.handler(after, arguments)
    except Refused as refusal:
        return Reply(False, str(refusal), state)
    return Reply(True, copy.deepcopy(value), after if tool.changes else state)


def entry(table: Mapping[str, Json], key: str, what: str) -> Json:
    """``table[key]``. Raises ``Refused``."""
    if key not in table:
        raise Refused(f"There is no {what} {key!r}.")
    return table[key]


def next_id(prefix: str, taken: Mapping[str, Json]) -> str:
    """The next free id: one more than the highest number in use."""
    numbers = [int(key[len(prefix) :]) for key in taken if key[len(prefix) :].isdecimal()]
    return f"{prefix}{max(numbers, default=0) + 1}"


TEXT: Mapping[str, Json] = {"type": "string", "minLength": 1, "maxLength": 4000}
