"""The REST API of families, verifiers, gauntlets and installed packs."""

import json

import pytest

from apps.core.models import WorkUnit
from apps.feedback import pack_families
from apps.feedback.models import TaskAsset

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(pack_families, "FAMILY_TASKS", 4)


def post(client, path, body):
    return client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json")


def test_packs_are_listed_checked_and_added(api, project, store):
    packs = api.get("/api/v1/packs").json()
    check = post(api, "/packs/checks", {"families": ["tool_call"], "sample": 2})
    added = post(api, "/families", {"name": "tool_call", "pack": "starter"})
    nothing = post(api, "/families", {"name": "anything"})

    starter = next(pack for pack in packs if pack["name"] == "starter")
    family = next(family for family in starter["families"] if family["name"] == "tool_call")
    assert (family["verifier_kinds"], family["check"], family["family"]) == (["tool_call"], None, None)
    assert (check.status_code, WorkUnit.objects.get(pk=check.json()["unit"]).kind) == (202, "pack_check")
    assert (added.status_code, added.json()["pack"], added.json()["unavailable"]) == (201, "starter", "")
    assert nothing.json()["error"]["code"] == "verifier_missing"


def test_entries_tell_their_history_and_are_retired_for_a_reason(api, project, store):
    made = post(api, "/families", {"name": "invoice_arithmetic", "pack": "starter"}).json()
    verifier = api.get(f"/api/v1/verifiers/{made['verifier']}").json()
    cheat = next(entry for entry in verifier["entries"] if entry["row"] == 21)

    without = post(api, f"/gauntlet-entries/{cheat['id']}/retire", {"reason": ""})
    retired = post(api, f"/gauntlet-entries/{cheat['id']}/retire", {"reason": "Said in our trade."})
    whole = api.get(f"/api/v1/gauntlet-entries/{cheat['id']}").json()

    assert verifier["runs"][0]["number"] == 1
    assert without.status_code == 422
    assert retired.json()["retired_reason"] == "Said in our trade."
    assert (whole["source"], whole["history"], whole["task"]["family"]) == (
        "arXiv 2507.08794", [], "invoice_arithmetic",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": []}, "id"),
        ({"messages": "?"}, "messages"),
        ({"reference": {"a": {"b": 1}}}, "cannot be judged"),
    ],
)
def test_an_entry_whose_task_is_none_is_refused_with_a_reason(api, project, store, change, said):
    made = post(api, "/families", {"name": "invoice_arithmetic", "pack": "starter"}).json()
    entry = {"origin": "exploit", "name": "broken", "answer": "x", "task": _task_of(made) | change}

    refused = post(api, f"/verifiers/{made['verifier']}/entries", entry)
    empty = post(api, f"/verifiers/{made['verifier']}/entries", entry | {"task": {}})

    assert [refused.status_code, empty.status_code] == [400, 400]
    assert refused.json()["error"]["code"] == "task_invalid"
    assert said in refused.json()["error"]["message"]


def test_an_entry_with_turns_is_added_by_api(api, project, store):
    made = post(api, "/families", {"name": "invoice_arithmetic", "pack": "starter"}).json()
    entry = {"origin": "exploit", "name": "two turns", "task": _task_of(made), "turns": ["a", "b"], "row": 23}

    added = post(api, f"/verifiers/{made['verifier']}/entries", entry)
    refused = post(api, f"/verifiers/{made['verifier']}/entries", entry | {"row": 77})

    assert (added.status_code, added.json()["turns"]) == (201, ["a", "b"])
    assert refused.json()["error"]["code"] == "row_unknown"


def _task_of(family):
    return TaskAsset.objects.filter(family_id=family["id"]).first().task
