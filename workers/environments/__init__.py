"""Worlds an episode happens in, chosen by ``TaskSpec.environment``."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from domain.contracts import TaskSpec
from workers.context import UnitRefused
from workers.environments import coding, documents, modelling, recorded, tools
from workers.environments.live import inspect_part, open_sandbox
from workers.environments.protocol import Answer, Environment, EnvironmentBroken
from workers.environments.single_turn import SingleTurn
from workers.environments.turns import MAX_TURNS, TaskRefused, Turns, narrowed, turns_of

SINGLE = "single_turn"
ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    SINGLE: SingleTurn,
    "coding": lambda: Turns(coding.Coding(open_sandbox)),
    "documents": lambda: Turns(documents.Documents()),
    "modelling": lambda: Turns(modelling.Modelling(inspect_part)),
    "tools": lambda: Turns(tools.ToolServices()),
    "recorded": lambda: Turns(recorded.Recorded()),
}
# Environments whose episodes keep a sandbox for all their turns, or make several.
HOLDS_SANDBOX = frozenset({"coding", "modelling"})
# Environments whose tool ``submit`` takes the final answer, and its argument's name.
_SUBMITS: dict[str, str] = {"documents": "answer", "modelling": "code"}
_TOOLS: dict[str, Callable[[TaskSpec], Sequence[Any]]] = {
    "coding": lambda task: coding.TOOLS,
    "documents": lambda task: documents.TOOLS,
    "modelling": lambda task: modelling.TOOLS,
    "tools": tools.definitions_of,
    "recorded": recorded.definitions_of,
}


class UnknownEnvironment(UnitRefused):
    """A task names an environment that this worker does not have."""


def make_environment(name: str) -> Environment:
    """A fresh environment for one episode; raises ``UnknownEnvironment``."""
    if name not in ENVIRONMENTS:
        raise UnknownEnvironment(f"unknown environment {name!r}; known: {', '.join(sorted(ENVIRONMENTS))}")
    return ENVIRONMENTS[name]()


def with_tools(task: TaskSpec) -> TaskSpec:
    """``task`` with the tool definitions that its environment offers, as the model is to see them.
    Raises ``TaskRefused``."""
    if task.environment not in _TOOLS:
        return task
    return task.model_copy(update={"tools": narrowed(_TOOLS[task.environment](task), task)})


def final_turn(task: TaskSpec, answer: str) -> str:
    """What a model says to hand in ``answer`` in the task's environment; an empty answer is silence."""
    argument = _SUBMITS.get(task.environment)
    if argument is None or not answer.strip():
        return answer
    return json.dumps({"tool": "submit", "arguments": {argument: answer}}, ensure_ascii=False)


__all__ = [
    "ENVIRONMENTS",
    "HOLDS_SANDBOX",
    "MAX_TURNS",
    "SINGLE",
    "Answer",
    "Environment",
    "EnvironmentBroken",
    "SingleTurn",
    "TaskRefused",
    "UnknownEnvironment",
    "final_turn",
    "make_environment",
    "turns_of",
    "with_tools",
]
