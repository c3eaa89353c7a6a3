"""REST of versions, releases, routing and deployments."""

import json

import pytest

from apps.core.permissions import SCOPES
from apps.core.services import api_key_create
from apps.versions import services
from apps.versions.models import Deployment, Evidence, Release
from apps.versions.selectors import version_in_service
from tests.apps.versions.conftest import PLAN
from tests.apps.versions.traffic import traffic

SECRET = "sk-very-secret-0123456789"


def send(api, method, path, body=None):
    return getattr(api, method)(f"/api/v1{path}", json.dumps(body), content_type="application/json")


@pytest.fixture
def without_release(client, actor):
    """A key that may do everything but release."""
    scopes = [scope for scope in SCOPES if scope not in ("release", "admin")]
    made = api_key_create(project=actor.project, name="engineer", scopes=scopes, by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {made.secret}"
    return client


def test_versions_are_listed_newest_first(api, candidate):
    rows = api.get("/api/v1/versions").json()

    assert [row["number"] for row in rows] == ["1.1", "1.0"]
    assert [row["number"] for row in api.get("/api/v1/versions?state=in_service").json()] == ["1.0"]


def test_a_version_comes_with_editions_evidence_and_lineage(api, candidate):
    body = api.get(f"/api/v1/versions/{candidate.pk}").json()

    assert {edition["kind"] for edition in body["editions"]} == {"standard", "high_speed"}
    assert body["evidence"][0]["sentence"] == "71 % (64–77), n = 212."
    assert [node["label"] for node in body["lineage"]] == ["run run1-v1", "version 1.1"]


def test_an_adapter_made_elsewhere_is_registered_once_per_origin(api, base, adapter):
    body = {"adapter_name": "mine", "adapter_digest": adapter("x"), "origin": "ci:7"}

    first, again = (send(api, "post", "/versions", body) for _ in range(2))

    assert (first.status_code, first.json()["number"]) == (201, "1.1")
    assert again.json()["id"] == first.json()["id"]


def test_registering_an_unknown_adapter_is_a_clear_404(api, base, store):
    answer = send(api, "post", "/versions", {"adapter_name": "mine", "adapter_digest": "a" * 64})

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "adapter_missing"


def test_a_release_runs_its_whole_life_over_rest(api, candidate, project):
    made = send(api, "post", "/releases", {"version_id": candidate.pk, "reason": "Better", "plan": PLAN})
    assert (made.status_code, made.json()["weight"]) == (201, 0.1)
    path = f"/releases/{made.json()['id']}"

    traffic(Release.objects.get(), canary=(10, 1), control=(90, 2))
    segments = api.get(f"/api/v1{path}").json()["segments"]
    assert segments == [
        {
            "segment": 0,
            "weight": 0.1,
            "control": {"units": 90, "failed": 2},
            "canary": {"units": 10, "failed": 1},
        }
    ]

    assert send(api, "post", f"{path}/pause", {"reason": "Lunch"}).json()["paused"] is True
    assert send(api, "post", f"{path}/resume", {"reason": "Back"}).json()["paused"] is False
    assert send(api, "post", f"{path}/abort", {"reason": "Enough"}).json()["state"] == "aborted"
    assert send(api, "post", f"{path}/abort", {"reason": "Enough"}).status_code == 200
    assert [row["state"] for row in api.get("/api/v1/releases").json()] == ["aborted"]


def test_a_release_without_an_evaluation_is_a_conflict(api, candidate):
    Evidence.objects.all().delete()

    answer = send(api, "post", "/releases", {"version_id": candidate.pk, "reason": "Better"})

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "evaluation_missing"


def test_a_plan_that_cannot_run_is_a_400_with_a_sentence(api, candidate):
    plan = {"steps": [{"weight": 0.5, "min_units": 5}, {"weight": 0.2, "min_units": 5}]}

    answer = send(api, "post", "/releases", {"version_id": candidate.pk, "reason": "Better", "plan": plan})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "The weights of a release must rise from step to step."


def test_promote_and_roll_back(api, candidate, control, project):
    assert send(api, "post", f"/versions/{candidate.pk}/promote", {"reason": "Better"}).json()["state"] == (
        "in_service"
    )
    assert send(api, "post", "/rollback", {"reason": "Complaints"}).json()["number"] == "1.0"
    assert send(api, "post", "/rollback", {"reason": "Again"}).json()["number"] == "1.0"
    assert version_in_service(project) == control


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/versions/{version}/promote", {"reason": "x"}),
        ("post", "/rollback", {"reason": "x"}),
        ("post", "/releases", {"version_id": 1, "reason": "x"}),
        ("post", "/releases/{release}/pause", {"reason": "x"}),
        ("post", "/releases/{release}/resume", {"reason": "x"}),
        ("post", "/releases/{release}/abort", {"reason": "x"}),
        ("post", "/releases/{release}/acknowledge", {}),
        ("post", "/routing", {"capture_success_rate": 0.5}),
    ],
)
def test_moving_traffic_needs_the_release_scope(without_release, release, candidate, method, path, body):
    answer = send(without_release, method, path.format(version=candidate.pk, release=release.pk), body)

    assert answer.status_code == 403
    assert "release" in answer.json()["error"]["message"]


def test_routing_is_read_and_changed(api, control):
    changed = send(api, "post", "/routing", {"task_types": {"batch": "standard"}, "reason": "Simple"})

    assert (changed.status_code, changed.json()["number"]) == (200, 2)
    assert api.get("/api/v1/routing").json()["snapshot"]["task_types"] == {"batch": "standard"}
    assert [row["number"] for row in api.get("/api/v1/routing/revisions").json()] == [2, 1]
    assert [row["number"] for row in api.get("/api/v1/routing/revisions?before=2").json()] == [1]


def test_routing_before_any_version_is_a_404(api):
    assert api.get("/api/v1/routing").status_code == 404


def test_an_endpoint_is_registered_changed_and_retired_and_no_answer_has_its_key(api, base):
    body = {"name": "rival", "base_url": "https://h/v1", "model": "m", "api_key": SECRET}
    made = send(api, "post", "/deployments", body)
    path = f"/deployments/{made.json()['id']}"
    changed = send(api, "patch", path, {"model": "larger"})
    one = api.get(f"/api/v1{path}")
    listed = api.get("/api/v1/deployments")
    gone = api.delete(f"/api/v1{path}")

    assert [answer.status_code for answer in (made, changed, one, listed, gone)] == [201, 200, 200, 200, 204]
    assert (one.json()["model"], one.json()["has_key"]) == ("larger", True)
    assert all(SECRET not in answer.content.decode() for answer in (made, changed, one, listed))
    assert [row["kind"] for row in api.get("/api/v1/deployments").json()] == ["engine", "engine"]
    assert Deployment.objects.get(name="rival").retired_at is not None


def test_testing_an_endpoint_says_what_came_back(api, base):
    made = send(api, "post", "/deployments", {"name": "gone", "base_url": "http://127.0.0.1:9", "model": "m"})

    answer = send(api, "post", f"/deployments/{made.json()['id']}/test")

    assert answer.json() == {
        "ok": False,
        "sentence": "The address could not be reached. Check host, port and certificate.",
    }


@pytest.mark.parametrize("path", ["/versions/{}", "/releases/{}", "/deployments/{}"])
def test_what_belongs_to_another_project_is_not_found(api, admin, release, base, path):
    from apps.core.models import Membership, Project, Role
    from apps.core.permissions import system_actor

    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.create(project=other, user=admin, role=Role.ADMIN)
    foreign_base = services.base_model_register(
        project=other, name="pocket", engine_name="pocket", path="/m", by=system_actor(other)
    )
    foreign = {
        "/versions/{}": foreign_base.versions.get().pk,
        "/releases/{}": release.pk + 1,
        "/deployments/{}": other.deployments.first().pk,
    }

    assert api.get("/api/v1" + path.format(foreign[path])).status_code == 404


def test_every_operation_is_described(api):
    spec = api.get("/api/v1/openapi.json").json()
    ours = [
        operation
        for path, operations in spec["paths"].items()
        for operation in operations.values()
        if set(operation.get("tags", [])) & {"versions", "releases", "routing"}
    ]

    assert len(ours) >= 20
    assert all(operation["summary"] for operation in ours)
