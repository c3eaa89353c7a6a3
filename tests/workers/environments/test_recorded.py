"""Tools that answer as they were recorded."""

import json
from typing import Any

import pytest

from domain.contracts import TaskSpec
from domain.verifiers import verify
from tests.workers.environments.conftest import call, task_in
from workers.environments import Answer, Environment, TaskRefused, make_environment, with_tools

ENTRIES: list[dict[str, Any]] = [
    {"name": "weather", "arguments": {"city": "Ghent"}, "reply": {"sky": "rain"}},
    {"name": "book", "arguments": {"room": "A"}, "reply": "booked", "sets": {"/rooms/A": "taken", "/n": 1}},
    {"name": "book", "arguments": {"room": "A"}, "reply": "is taken", "ok": False},
    {"name": "log", "match": "some", "reply": "ok", "sets": {"/lines/-": "x"}},
]


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key != "text"],
    }
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def task(entries: Any = ENTRIES, **params: Any) -> TaskSpec:
    text = {"type": "string"}
    tools = (_tool("weather", city=text), _tool("book", room=text), _tool("log", text=text))
    made = {"recorded": entries, "state": {"rooms": {"A": "free"}, "lines": []}, **params}
    return task_in("recorded", **made).model_copy(update={"tools": tools})


async def started(given: TaskSpec | None = None) -> Environment:
    environment = make_environment("recorded")
    await environment.reset(given or task())
    environment.observe()
    return environment


async def said(environment: Environment, action: str) -> str:
    await environment.act(Answer(action))
    return str(environment.observe()[0].content)


async def test_a_call_gets_the_reply_that_was_recorded_for_its_arguments() -> None:
    environment = await started()

    assert json.loads(await said(environment, call("weather", city="Ghent"))) == {"sky": "rain"}
    assert "nothing was recorded" in await said(environment, call("weather", city="Lyon"))


async def test_equal_calls_get_their_replies_in_turn_and_then_the_last_again() -> None:
    environment = await started()

    replies = [await said(environment, call("book", room="A")) for _ in range(3)]

    assert replies == ["booked", "is taken", "is taken"]
    calls = (await environment.evidence())["trace"]["calls"]
    assert [entry["ok"] for entry in calls] == [True, False, False]


async def test_what_a_call_sets_is_the_end_state_each_time_it_is_made() -> None:
    given = task()
    environment = await started(given)

    for action in (call("book", room="A"), call("log", text="one"), call("log", text="two")):
        await said(environment, action)

    state = (await environment.evidence())["end_state"]["state"]
    assert state == {"rooms": {"A": "taken"}, "lines": ["x", "x"], "n": 1}
    assert given.environment_params["state"] == {"rooms": {"A": "free"}, "lines": []}


async def test_the_end_state_and_the_trace_are_judged_like_those_of_any_world() -> None:
    given = task()
    environment = await started(given)
    await said(environment, call("book", room="A"))
    assert await environment.act(Answer("It is booked."))
    evidence = await environment.evidence()

    state = given.model_copy(
        update={
            "verifier": given.verifier.model_copy(update={"kind": "end_state", "params": {"allow": ["/n"]}}),
            "reference": {"checks": [{"path": "/rooms/A", "equals": "taken"}]},
        }
    )
    twice = given.model_copy(
        update={
            "verifier": given.verifier.model_copy(update={"kind": "trace", "params": {}}),
            "reference": {"required": [{"name": "book", "arguments": {"room": "A"}, "times": 2}]},
        }
    )
    assert verify(state, "It is booked.", evidence).state == "passed"
    assert verify(twice, "It is booked.", evidence).state == "failed"
    assert environment.answer_text() == "It is booked."


async def test_what_unknown_calls_get_can_be_said() -> None:
    environment = await started(task(unknown="The service is down."))

    assert await said(environment, call("weather", city="Lyon")) == "The service is down."


def test_the_model_is_shown_the_tasks_own_tools() -> None:
    shown = with_tools(task()).tools

    assert [tool["function"]["name"] for tool in shown] == ["weather", "book", "log"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (task([]), "recorded"),
        (task([{"name": "weather"}]), "'reply' is a required property"),
        (task([{"name": "fly", "reply": 1}]), "'fly' was recorded, but is none of its tools"),
        (task([{"name": "log", "reply": 1, "sets": {"/no/such": 1}}]), "there is no 'no' around the place"),
        (task([{"name": "log", "reply": 1, "sets": {"lines": 1}}]), "does not match"),
        (task(ENTRIES, replies=3), "Additional properties"),
        (task().model_copy(update={"tools": ()}), "none of its tools"),
    ],
)
async def test_a_recording_that_makes_no_world_is_refused(given: TaskSpec, words: str) -> None:
    with pytest.raises(TaskRefused, match=words):
        await make_environment("recorded").reset(given)
