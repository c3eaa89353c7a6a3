"""Whatever a model says, an episode goes on or ends: nothing it says can raise."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifacts import ArtifactStore
from tests.workers.environments.conftest import call, shop, task_in
from tests.workers.environments.sandbox_fake import FakeSandbox
from workers.environments import Answer, with_tools
from workers.environments.coding import Coding
from workers.environments.documents import Documents
from workers.environments.modelling import Modelling
from workers.environments.tools import ToolServices
from workers.environments.turns import Turns
from workers.sandbox.protocol import SandboxSpec, Snapshot

CALENDAR = {"people": ["ana"], "rooms": {"R": {"seats": 1}}, "events": {}}
TASKS = {
    "coding": task_in("coding", files={"a.py": "x = 1\n"}, max_turns=16),
    "documents": task_in("documents", pages=["Net 1"], relations=["a + b.c == sum(d.e)"], max_turns=16),
    "modelling": task_in("modelling", constraints={"volume": 1}, max_turns=16),
    "tools": task_in("tools", state={**shop(), "calendar": CALENDAR}, max_turns=16),
}
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["O-1", "T-1", "C-1", "ana", "R", "a.py", "../a", "/etc", "\x00", "\ud800", "2026-03-03T09:00", "\n"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.just(10**300) | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=6,
)


def _fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly fit ``schema``, so that they reach the tool."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made = {
        "string": TEXTS,
        "integer": st.integers(-3, 2000),
        "number": st.floats(allow_nan=True) | st.integers(-5, 100) | st.sampled_from([0.005, 59.9, 10**300]),
        "boolean": st.booleans(),
        "array": st.lists(TEXTS, max_size=3),
        "object": st.dictionaries(st.sampled_from("abcde"), JSON, max_size=4),
    }
    return st.one_of(*(made[kind] for kind in kinds))


@cache
def _turns(environment: str) -> st.SearchStrategy[str]:
    calls = []
    for tool in with_tools(TASKS[environment]).tools:
        function = tool["function"]
        arguments = {name: _fitting(part) for name, part in function["parameters"]["properties"].items()}
        calls.append(
            st.fixed_dictionaries(
                {"tool": st.just(function["name"]), "arguments": st.fixed_dictionaries(arguments)}
            )
        )
    return st.one_of(*calls).map(json.dumps) | st.text(max_size=30)


@pytest.mark.parametrize("name", sorted(TASKS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_nothing_that_is_said_can_raise(name: str, data: st.DataObject, store: ArtifactStore) -> None:
    environment = Turns(_world(name, store))
    await environment.reset(TASKS[name])

    for _ in range(4):
        over = await environment.act(Answer(data.draw(_turns(name))))
        step = environment.sandbox_log()
        assert step is not None
        step.model_dump_json().encode()
        for message in environment.observe():
            str(message.content).encode()
        if over:
            break

    json.dumps(await environment.evidence()).encode()
    assert isinstance(environment.answer_text(), str)


@pytest.mark.parametrize("depth", [60, 400, 5000])
async def test_endless_nesting_is_a_bad_action(depth: int) -> None:
    environment = Turns(Documents())
    await environment.reset(TASKS["documents"])
    nested = '{"tool": "check", "arguments": {"fields": ' + '{"a": ' * depth + "1" + "}" * depth + "}}"

    assert not await environment.act(Answer(nested))

    step = environment.sandbox_log()
    assert step is not None
    assert step.status == "bad_action"


async def test_a_name_that_is_no_text_is_shown_and_left_out(store: ArtifactStore) -> None:
    sandbox = FakeSandbox(store)
    environment = Turns(Coding(_opened(sandbox)))
    await environment.reset(TASKS["coding"])
    environment.observe()
    sandbox.kept["\udcff.py"] = b"x"

    await environment.act(Answer(call("list_files")))

    (message,) = environment.observe()
    assert str(message.content).encode() == b"a.py (6 bytes)\n?.py (1 bytes)"
    assert (await environment.evidence())["workspace"]["left_out"] == ["?.py"]


def _world(name: str, store: ArtifactStore) -> Any:
    async def inspect(script: str) -> Any:
        return None, {"status": "error", "detail": "no"}

    worlds: dict[str, Callable[[], Any]] = {
        "coding": lambda: Coding(_opened(FakeSandbox(store))),
        "documents": Documents,
        "modelling": lambda: Modelling(inspect),
        "tools": ToolServices,
    }
    return worlds[name]()


def _opened(sandbox: FakeSandbox) -> Any:
    async def opened(spec: SandboxSpec, base: Snapshot | None) -> Any:
        return sandbox

    return opened
