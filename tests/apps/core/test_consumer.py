"""The WebSocket: who may listen, and that nothing is lost."""

import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async

from apps.core.consumers import EventsConsumer
from apps.core.events import publish
from apps.core.models import Project, User
from tests.waiting import GUARD_S


def connect(user: User, query: str) -> ApplicationCommunicator:
    scope: dict[str, Any] = {
        "type": "websocket", "path": "/ws/events/", "query_string": query.encode(), "headers": [],
        "subprotocols": [], "user": user,
    }  # fmt: skip
    return ApplicationCommunicator(EventsConsumer.as_asgi(), scope)


@pytest.mark.django_db(transaction=True)
async def test_a_stranger_is_turned_away(project: Project) -> None:
    stranger = await database_sync_to_async(User.objects.create_user)("eve")
    socket = connect(stranger, "project=billing")

    await socket.send_input({"type": "websocket.connect"})
    answer = await socket.receive_output(GUARD_S)

    assert (answer["type"], answer["code"]) == ("websocket.close", 4403)


@pytest.mark.django_db(transaction=True)
async def test_a_page_resumes_after_its_last_event(project: Project, admin: User) -> None:
    emit = database_sync_to_async(publish)
    first = await emit(project=project, topic="t", kind="One")
    second = await emit(project=project, topic="t", kind="Two", n=2)
    socket = connect(admin, f"project=billing&after={first.pk}")

    await socket.send_input({"type": "websocket.connect"})
    accepted = await socket.receive_output(GUARD_S)
    message = json.loads((await socket.receive_output(GUARD_S))["text"])
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(GUARD_S)

    assert accepted["type"] == "websocket.accept"
    assert message["after"] == second.pk
    assert [event["kind"] for event in message["events"]] == ["Two"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after", ["%C2%B2", "9" * 5000, "9" * 30, "-1", "x", "\x00"])
async def test_a_position_that_is_none_begins_at_the_end(project: Project, admin: User, after: str) -> None:
    await database_sync_to_async(publish)(project=project, topic="t", kind="One")
    socket = connect(admin, f"project=billing&after={after}")

    await socket.send_input({"type": "websocket.connect"})
    accepted = await socket.receive_output(GUARD_S)
    silent = await socket.receive_nothing(0.2)
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(GUARD_S)

    assert accepted["type"] == "websocket.accept"
    assert silent


@pytest.mark.django_db(transaction=True)
async def test_what_a_page_says_changes_nothing(project: Project, admin: User) -> None:
    socket = connect(admin, "project=billing&after=0")
    await socket.send_input({"type": "websocket.connect"})
    await socket.receive_output(GUARD_S)

    for said in ({"text": "{{{"}, {"bytes": b"\xff\xfe"}, {"text": json.dumps({"type": "events.more"})}):
        await socket.send_input({"type": "websocket.receive", **said})
    await database_sync_to_async(publish)(project=project, topic="t", kind="One")
    message = json.loads((await socket.receive_output(GUARD_S))["text"])
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(GUARD_S)

    assert [event["kind"] for event in message["events"]] == ["One"]
