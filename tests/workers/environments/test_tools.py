"""Stateful mock services behind an agent's tools."""

import copy
import json
from typing import Any

import pytest

from tests.workers.environments.conftest import call, shop, task_in
from workers.environments import Answer, Environment, TaskRefused, make_environment, with_tools


async def test_calls_change_the_state_and_are_kept_in_order() -> None:
    environment = await _started()

    await environment.act(Answer(call("get_order", order="O-1")))
    await environment.act(Answer(call("refund_order", order="O-1", amount=59.9, reason="late")))

    evidence = await environment.evidence()
    assert evidence["end_state"]["state"]["orders"]["orders"]["O-1"]["refunded"] == 59.9
    assert [(c["name"], c["ok"]) for c in evidence["trace"]["calls"]] == [
        ("get_order", True),
        ("refund_order", True),
    ]


async def test_the_reply_goes_back_to_the_model_as_a_tools_message() -> None:
    environment = await _started()
    environment.observe()

    over = await environment.act(Answer(call("get_order", order="O-1")))

    (message,) = environment.observe()
    assert not over
    assert message.role == "tool"
    assert '"paid": 59.9' in str(message.content)


async def test_an_impossible_call_is_refused_and_changes_nothing() -> None:
    environment = await _started()

    over = await environment.act(Answer(call("refund_order", order="O-1", amount=60, reason="more")))

    step = environment.sandbox_log()
    assert not over
    assert step is not None
    assert (step.status, step.changes) == ("refused", ())
    assert (await environment.evidence())["end_state"]["state"] == shop()


async def test_words_without_a_call_are_the_final_answer() -> None:
    environment = await _started()

    over = await environment.act(Answer("Your money is on its way."))

    assert over
    assert environment.answer_text() == "Your money is on its way."


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"tool": "get_order", "arguments": {"order": "O-1"', "cannot be read"),
        ('{"tool": "get_order", "tool": "refund_order", "arguments": {}}', "appears twice"),
        ('{"tool": "refund_order", "arguments": {"order": "O-1", "amount": NaN, "reason": "x"}}', "NaN"),
        ('{"tool": "get_order", "arguments": {"order": "O-1"}} {"a": 1}', "2 JSON objects"),
        (call("pay_me", amount=1), "There is no tool 'pay_me'"),
        (call("get_order"), "'order' is a required property"),
        (call("get_order", order="O-1", force=True), "force"),
    ],
)
async def test_a_bad_action_costs_a_turn_and_says_why(said: str, why: str) -> None:
    environment = await _started()
    environment.observe()

    over = await environment.act(Answer(said))

    (message,) = environment.observe()
    step = environment.sandbox_log()
    assert not over
    assert why in str(message.content)
    assert step is not None
    assert step.status == "bad_action"
    assert (await environment.evidence())["trace"]["calls"] == []


async def test_the_last_turn_ends_the_episode_and_is_announced() -> None:
    environment = await _started(max_turns=3)

    overs = []
    notices = []
    for _ in range(3):
        overs.append(await environment.act(Answer(call("list_tickets"))))
        notices.append("One turn is left." in "".join(str(m.content) for m in environment.observe()))

    assert overs == [False, False, True]
    assert notices == [False, True, False]


async def test_a_step_shows_which_document_changed_and_how() -> None:
    environment = await _started()

    await environment.act(Answer(call("close_ticket", ticket="T-1", resolution="refunded")))

    step = environment.sandbox_log()
    assert step is not None
    (change,) = step.changes
    assert (change.path, change.change) == ("tickets.json", "modified")
    assert '+   "status": "closed"' in change.diff


async def test_an_openai_call_is_read_like_a_written_one() -> None:
    environment = await _started()
    function = {"name": "get_order", "arguments": '{"order": "O-1"}'}

    await environment.act(Answer("", ({"id": "c1", "type": "function", "function": function},)))

    assert (await environment.evidence())["trace"]["calls"][0]["ok"] is True


def _native(name: str, id: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


async def test_calls_of_one_turn_are_done_in_order_and_each_gets_its_reply() -> None:
    environment = await _started()
    environment.observe()
    refund = {"order": "O-1", "amount": 20, "reason": "late"}

    await environment.act(
        Answer(
            "",
            (
                _native("refund_order", "a", **refund),
                _native("no_such_tool", "b"),
                _native("refund_order", "c", **refund),
            ),
        )
    )

    evidence = await environment.evidence()
    assert evidence["end_state"]["state"]["orders"]["orders"]["O-1"]["refunded"] == 40
    assert [call["name"] for call in evidence["trace"]["calls"]] == ["refund_order", "refund_order"]
    replies = environment.observe()
    assert [reply.tool_call_id for reply in replies] == ["a", "b", "c"]
    assert "There is no tool" in str(replies[1].content)
    step = environment.sandbox_log()
    assert step is not None
    assert (step.status, step.command.count("refund_order")) == ("bad_action", 2)
    assert len(step.changes) == 2


async def test_more_calls_than_a_turn_takes_are_not_done_and_are_told_so() -> None:
    environment = await _started()
    environment.observe()

    await environment.act(Answer("", tuple(_native("get_order", f"c{n}", order="O-1") for n in range(10))))

    assert len((await environment.evidence())["trace"]["calls"]) == 8
    assert [reply.content for reply in environment.observe()][8:] == ["Not done: at most 8 calls a turn."] * 2


async def test_the_task_is_never_changed_by_what_happens_in_it() -> None:
    state = shop()
    environment = await _started(state=state)
    before = copy.deepcopy(state)

    await environment.act(Answer(call("cancel_order", order="O-1", reason="x")))
    await environment.act(Answer(call("reply_ticket", ticket="T-1", text="Hello")))

    assert state == before


def test_the_model_is_shown_the_services_of_its_state() -> None:
    task = with_tools(task_in("tools", state=shop()))

    names = [tool["function"]["name"] for tool in task.tools]

    assert "refund_order" in names
    assert "reply_ticket" in names
    assert "create_event" not in names


def test_a_task_can_offer_fewer_tools() -> None:
    task = with_tools(task_in("tools", state=shop(), tools=["get_order"]))

    assert [tool["function"]["name"] for tool in task.tools] == ["get_order"]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "must be an object"),
        ({"state": {"now": "2026-01-01T00:00"}}, "has none of"),
        ({"state": shop(), "tools": ["fly"]}, "no service in its state has a tool 'fly'"),
        ({"state": shop(), "max_turns": 17}, "max_turns"),
    ],
)
async def test_a_task_that_makes_no_world_is_refused(params: dict[str, Any], why: str) -> None:
    with pytest.raises(TaskRefused, match=why):
        await make_environment("tools").reset(task_in("tools", **params))


async def _started(**params: Any) -> Environment:
    environment = make_environment("tools")
    await environment.reset(task_in("tools", **{"state": shop(), **params}))
    return environment
