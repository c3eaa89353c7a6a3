"""Mock services: what they do, what they refuse, and that they never change what they were given."""

import copy
import json
from typing import Any

import pytest

from domain.services import SERVICES, call, definitions

STATE: dict[str, Any] = {
    "now": "2026-03-02T09:00",
    "orders": {
        "policy": {"refund_days": 30, "damaged": "Always replace."},
        "customers": {
            "C-1": {"name": "Ana Roth", "email": "ana@example.org"},
            "C-2": {"name": "Ben Vogt", "email": "ben@example.org"},
        },
        "orders": {
            "O-1": {
                "customer": "C-1",
                "status": "delivered",
                "placed_on": "2025-01-01",
                "items": [{"sku": "A", "name": "Lamp", "quantity": 1, "price": 59.9}],
                "paid": 59.9,
                "refunded": 10,
            },
            "O-2": {"customer": "C-2", "status": "placed", "items": [], "paid": 5, "refunded": 0},
        },
    },
    "tickets": {
        "tickets": {
            "T-1": {"subject": "Lamp", "customer": "C-1", "status": "open", "queue": "returns"},
            "T-2": {"subject": "Old", "customer": "C-2", "status": "closed", "queue": "billing"},
        },
        "queues": ["returns", "billing"],
    },
    "calendar": {
        "hours": {"start": "09:00", "end": "12:00"},
        "people": ["ana", "ben"],
        "rooms": {"R1": {"seats": 2}},
        "events": {
            "E-4": {
                "title": "Standup",
                "start": "2026-03-03T09:00",
                "end": "2026-03-03T10:00",
                "people": ["ana"],
                "room": "R1",
                "status": "planned",
            }
        },
    },
}


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("find_orders", {"customer": "ANA@example.org"}, "O-1"),
        ("find_orders", {"customer": "ben vogt"}, "O-2"),
        ("get_order", {"order": "O-1"}, "delivered"),
        ("get_customer", {"customer": "C-1"}, "Ana Roth"),
        ("get_policy", {}, "refund_days"),
        ("get_policy", {"topic": "damaged"}, "Always replace."),
        ("list_tickets", {"status": "open"}, "T-1"),
        ("get_ticket", {"ticket": "T-2"}, "Old"),
        ("list_events", {"day": "2026-03-03", "person": "ana"}, "E-4"),
        ("find_free", {"people": ["ana"], "day": "2026-03-03", "minutes": 90}, "2026-03-03T10:00"),
    ],
)
def test_reading_answers_and_leaves_the_state_alone(name: str, arguments: Any, value: str) -> None:
    reply = call(STATE, name, arguments)

    assert reply.ok
    assert value in json.dumps(reply.value)
    assert reply.state is STATE


@pytest.mark.parametrize(
    ("name", "arguments", "where", "value"),
    [
        ("refund_order", {"order": "O-1", "amount": 49.9, "reason": "r"}, "orders.orders.O-1.refunded", 59.9),
        ("cancel_order", {"order": "O-2", "reason": "r"}, "orders.orders.O-2.status", "cancelled"),
        ("change_address", {"order": "O-2", "address": "Bern"}, "orders.orders.O-2.address", "Bern"),
        ("reply_ticket", {"ticket": "T-1", "text": "Hi"}, "tickets.tickets.T-1.messages.0.text", "Hi"),
        ("add_note", {"ticket": "T-2", "text": "n"}, "tickets.tickets.T-2.notes.0.at", "2026-03-02T09:00"),
        ("set_priority", {"ticket": "T-1", "priority": "high"}, "tickets.tickets.T-1.priority", "high"),
        ("move_ticket", {"ticket": "T-1", "queue": "billing"}, "tickets.tickets.T-1.queue", "billing"),
        ("tag_ticket", {"ticket": "T-1", "tag": "vip"}, "tickets.tickets.T-1.tags.0", "vip"),
        ("close_ticket", {"ticket": "T-1", "resolution": "done"}, "tickets.tickets.T-1.status", "closed"),
        ("cancel_event", {"event": "E-4"}, "calendar.events.E-4.status", "cancelled"),
    ],
)
def test_a_change_is_in_the_new_state_only(name: str, arguments: Any, where: str, value: Any) -> None:
    before = copy.deepcopy(STATE)

    reply = call(STATE, name, arguments)

    found: Any = reply.state
    for part in where.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    assert (reply.ok, found) == (True, value)
    assert before == STATE


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("get_order", {"order": "O-9"}, "no order 'O-9'"),
        ("find_orders", {"customer": "Cy"}, "no customer 'Cy'"),
        ("refund_order", {"order": "O-1", "amount": 49.91, "reason": "r"}, "Only 49.90"),
        ("refund_order", {"order": "O-1", "amount": 0, "reason": "r"}, "above 0"),
        ("refund_order", {"order": "O-1", "amount": -5, "reason": "r"}, "above 0"),
        ("refund_order", {"order": "O-1", "amount": 0.001, "reason": "r"}, "two decimals"),
        ("cancel_order", {"order": "O-1", "reason": "r"}, "is delivered"),
        ("change_address", {"order": "O-1", "address": "x"}, "is delivered"),
        ("send_replacement", {"order": "O-1", "sku": "B", "reason": "r"}, "no item 'B'"),
        ("send_replacement", {"order": "O-2", "sku": "A", "reason": "r"}, "is placed"),
        ("reply_ticket", {"ticket": "T-2", "text": "Hi"}, "is closed"),
        ("close_ticket", {"ticket": "T-2", "resolution": "x"}, "is closed"),
        ("move_ticket", {"ticket": "T-1", "queue": "sales"}, "no queue 'sales'"),
        ("move_event", {"event": "E-9", "start": "x", "end": "y"}, "no event"),
        ("move_event", {"event": "E-4", "start": "soon", "end": "later"}, "is no time"),
        ("move_event", {"event": "E-4", "start": "2026-03-03T11:00", "end": "2026-03-03T11:00"}, "after the"),
        ("move_event", {"event": "E-4", "start": "2026-03-01T11:00", "end": "2026-03-01T12:00"}, "the past"),
        ("find_free", {"people": ["cy"], "day": "2026-03-03", "minutes": 30}, "no cy"),
    ],
)
def test_the_impossible_is_refused_and_changes_nothing(name: str, arguments: Any, why: str) -> None:
    reply = call(STATE, name, arguments)

    assert not reply.ok
    assert why in reply.value
    assert reply.state is STATE


def test_two_equal_refunds_are_two_refunds() -> None:
    once = call(STATE, "refund_order", {"order": "O-1", "amount": 20, "reason": "r"})
    twice = call(once.state, "refund_order", {"order": "O-1", "amount": 20, "reason": "r"})

    assert twice.state["orders"]["orders"]["O-1"]["refunded"] == 50.0
    assert len(twice.state["orders"]["refunds"]) == 2


def test_many_small_refunds_add_up_to_the_cent() -> None:
    state: Any = STATE
    for _ in range(3):
        state = call(state, "refund_order", {"order": "O-1", "amount": 0.1, "reason": "r"}).state

    assert state["orders"]["orders"]["O-1"]["refunded"] == 10.3


def test_a_policy_is_for_the_agent_to_keep() -> None:
    """The order is a year old and the policy says 30 days: the service pays all the same."""
    assert call(STATE, "refund_order", {"order": "O-1", "amount": 5, "reason": "r"}).ok


def _event(**changes: Any) -> dict[str, Any]:
    event = {"title": "Plan", "start": "2026-03-03T09:30", "end": "2026-03-03T10:30", "people": ["ben"]}
    return event | changes


def test_people_may_be_booked_twice_but_rooms_may_not() -> None:
    assert call(STATE, "create_event", _event(people=["ana"])).ok
    assert "taken by E-4" in call(STATE, "create_event", _event(room="R1")).value
    after = _event(room="R1", start="2026-03-03T10:00", end="2026-03-03T11:00")
    assert call(STATE, "create_event", after).value == {"event": "E-5"}


def test_a_room_has_only_so_many_seats() -> None:
    state = copy.deepcopy(STATE)
    state["calendar"]["rooms"]["R1"]["seats"] = 1
    late = _event(room="R1", start="2026-03-03T10:00", end="2026-03-03T11:00", people=["ana", "ben"])

    assert "has 1 seats" in call(state, "create_event", late).value


def test_an_event_does_not_stand_in_its_own_way() -> None:
    times = {"start": "2026-03-03T09:30", "end": "2026-03-03T10:30"}

    assert call(STATE, "move_event", {"event": "E-4", **times}).ok


def test_a_cancelled_event_frees_its_room_and_people() -> None:
    state = call(STATE, "cancel_event", {"event": "E-4"}).state

    free = call(state, "find_free", {"people": ["ana"], "day": "2026-03-03", "minutes": 180})

    assert free.value == ["2026-03-03T09:00"]
    assert call(state, "create_event", _event(room="R1")).ok


def test_the_same_calls_end_in_the_same_state() -> None:
    calls = [("reply_ticket", {"ticket": "T-1", "text": "Hi"}), ("create_event", _event())]

    ends = []
    for _ in range(2):
        state: Any = STATE
        for name, arguments in calls:
            state = call(state, name, arguments).state
        ends.append(json.dumps(state, sort_keys=True))

    assert ends[0] == ends[1]


def test_every_tool_says_what_it_takes() -> None:
    tools = definitions(STATE)

    assert len({tool["function"]["name"] for tool in tools}) == len(tools)
    assert sum(len(service.tools) for service in SERVICES.values()) == len(tools)
    assert all(tool["function"]["parameters"]["additionalProperties"] is False for tool in tools)
