"""REST: start, watch and stop turns."""

import pytest
from django.test import Client

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import api_key_create
from apps.loop.models import DemoTurn, TurnLine


def _post(client: Client, path: str, body: dict | None = None):
    return client.post(path, body or {}, content_type="application/json")


def test_a_turn_is_started_with_its_seed(api: Client, project: Project):
    answer = _post(api, "/api/v1/loop/turns", {"seed": 9})

    assert answer.status_code == 201
    assert (answer.json()["seed"], answer.json()["status"]) == (9, "running")
    assert DemoTurn.objects.get().project == project


def test_a_second_one_is_a_conflict(api: Client, row: DemoTurn):
    answer = _post(api, "/api/v1/loop/turns")

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "turn_running"


@pytest.mark.parametrize("seed", [-1, 2**31, 2**80, "seven"])
def test_an_impossible_seed_is_invalid(api: Client, seed: object):
    answer = _post(api, "/api/v1/loop/turns", {"seed": seed})

    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid"


def test_lines_come_in_order_with_seconds_since_the_start(api: Client, row: DemoTurn):
    for text in ("first", "second"):
        TurnLine.objects.create(turn=row, phase="prepare", text=text)

    lines = api.get(f"/api/v1/loop/turns/{row.pk}").json()["lines"]

    assert [line["text"] for line in lines] == ["first", "second"]
    assert 0 <= lines[0]["seconds"] <= lines[1]["seconds"] < 60


def test_an_ended_turn_carries_report_and_sentence(api: Client, row: DemoTurn):
    DemoTurn.objects.update(status="done", report={"sentence": "1.1 replaced 1.0.", "succeeded": True})

    body = api.get(f"/api/v1/loop/turns/{row.pk}").json()

    assert body["sentence"] == "1.1 replaced 1.0."
    assert body["report"]["succeeded"] is True


def test_the_list_is_newest_first(api: Client, row: DemoTurn, actor: Actor):
    DemoTurn.objects.update(status="done")
    _post(api, "/api/v1/loop/turns")

    ids = [turn["id"] for turn in api.get("/api/v1/loop/turns").json()]

    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 2


def test_a_turn_is_stopped_once(api: Client, row: DemoTurn):
    first = _post(api, f"/api/v1/loop/turns/{row.pk}/cancel")
    second = _post(api, f"/api/v1/loop/turns/{row.pk}/cancel")

    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert (second.status_code, second.json()["error"]["code"]) == (409, "turn_ended")


def test_no_answer_carries_the_turns_key(api: Client, row: DemoTurn):
    answer = api.get(f"/api/v1/loop/turns/{row.pk}")

    assert "api_key" not in answer.json()
    assert "fw_" not in answer.content.decode()


def test_turns_of_another_project_are_not_found(api: Client, row: DemoTurn):
    other = Project.objects.create(name="Legal", slug="legal")
    DemoTurn.objects.update(project=other)

    assert api.get(f"/api/v1/loop/turns/{row.pk}").status_code == 404
    assert api.get("/api/v1/loop/turns").json() == []
    assert _post(api, f"/api/v1/loop/turns/{row.pk}/cancel").status_code == 404


def test_a_key_that_may_only_read_starts_and_stops_nothing(client: Client, row: DemoTurn, actor: Actor):
    secret = api_key_create(project=actor.project, name="reader", scopes=["read"], by=actor).secret
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {secret}"

    assert client.get("/api/v1/loop/turns").status_code == 200
    assert _post(client, "/api/v1/loop/turns").status_code == 403
    assert _post(client, f"/api/v1/loop/turns/{row.pk}/cancel").status_code == 403
    assert DemoTurn.objects.get().status == "running"
