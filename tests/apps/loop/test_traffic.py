"""The demo's users."""

import json
import threading

import pytest

from apps.loop.turn import plan
from apps.loop.turn import traffic as users
from apps.loop.turn.context import Turn, TurnFailed
from clients.flywheel import ApiError
from tests.apps.loop.fake_api import FakeApi
from tests.waiting import GUARD_S


def test_each_user_asks_under_a_name_of_their_own(turn: Turn, fake: FakeApi):
    users.send(turn, "traffic", plan.watched(7)[:4], start=12)

    assert sorted(fake.asked) == [f"turn{turn.row.pk}-traffic-{number}" for number in range(12, 16)]


def test_only_wrong_answers_are_corrected(turn: Turn, fake: FakeApi):
    exchanges = users.send(turn, "traffic", plan.watched(7)[:6], start=0)

    assert [exchange.passed for exchange in exchanges] == [False, True] * 3
    assert len(fake.captures) == 3


def test_a_chunk_sent_again_is_reported_once(turn: Turn, fake: FakeApi):
    users.send(turn, "traffic", plan.watched(7)[:6], start=0)
    users.send(turn, "traffic", plan.watched(7)[:6], start=0)

    assert len(fake.captures) == 3


def test_a_correction_is_the_right_answer_and_names_the_operation(turn: Turn, fake: FakeApi, monkeypatch):
    sent: list[dict] = []
    monkeypatch.setattr(fake, "_corrected", lambda item: sent.append(item) or {"status": "created"})

    users.send(turn, "traffic", plan.watched(7)[:1], start=0)

    assert sent[0]["operation"] == f"op-turn{turn.row.pk}-traffic-0"
    assert json.loads(sent[0]["correction"]) == plan.watched(7)[0].reference


@pytest.mark.parametrize("status", [429, 500, 502])
def test_a_failing_model_is_one_users_bad_luck(turn: Turn, fake: FakeApi, status: int):
    name = f"turn{turn.row.pk}-traffic-1"
    fake.failing[name] = ApiError(status, "upstream_error", "The model failed.")

    exchanges = users.send(turn, "traffic", plan.watched(7)[:3], start=0)

    assert [exchange.passed for exchange in exchanges] == [False, None, False]


@pytest.mark.parametrize("status", [0, 401, 403, 404])
def test_what_concerns_everyone_is_raised(turn: Turn, fake: FakeApi, status: int):
    fake.failing["chat"] = ApiError(status, "x", "not for you")

    with pytest.raises(ApiError):
        users.send(turn, "traffic", plan.watched(7)[:6], start=0)


def test_a_correction_that_is_not_taken_ends_the_turn(turn: Turn, fake: FakeApi, monkeypatch):
    refusal = {"status": "invalid", "message": "“correction” is too long"}
    monkeypatch.setattr(fake, "_corrected", lambda item: refusal)

    with pytest.raises(TurnFailed, match="not taken: “correction” is too long"):
        users.send(turn, "traffic", plan.watched(7)[:1], start=0)


def test_the_lease_is_kept_while_a_chunk_takes_long(turn: Turn, fake: FakeApi, monkeypatch):
    held = threading.Event()
    monkeypatch.setattr(users, "_HOLD_EVERY_S", 0.01)
    slow = fake.chat

    def chat(*arguments, **named):
        assert held.wait(timeout=GUARD_S)
        return slow(*arguments, **named)

    monkeypatch.setattr(fake, "chat", chat)
    turn.hold = held.set

    users.send(turn, "traffic", plan.watched(7)[:2], start=0)

    assert held.is_set()
