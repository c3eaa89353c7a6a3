"""REST: judges, calibrations, gold answers."""

import pytest

from apps.core.models import AuditEvent, Project
from apps.core.services import api_key_create
from apps.feedback import services as feedback
from apps.feedback.models import Judge
from apps.versions.services import deployment_register_external

pytestmark = pytest.mark.django_db
BODY = {"name": "Tone", "kind": "judge", "params": {"criteria": ["It is polite."], "models": ["judge"]}}
GOLD = [{"question": f"Q{n}?", "answer": "An answer to it.", "passes": bool(n % 2)} for n in range(4)]


def post(api, path, body):
    return api.post(f"/api/v1{path}", body, content_type="application/json")


@pytest.fixture
def ready(api, project, actor, store):
    """A judge, its endpoint and four gold answers, all through the API."""
    deployment_register_external(
        project=project, name="judge", base_url="http://127.0.0.1:9", model="m", api_key="sk", by=actor
    )
    assert post(api, "/gold-answers", GOLD).json() == {"added": 4, "changed": 0, "same": 0}
    return post(api, "/judges", BODY).json()["id"]


def test_a_judge_is_saved_listed_and_read(api, ready):
    assert post(api, "/judges", BODY).status_code == 409
    assert post(api, "/judges", {**BODY, "kind": "exact"}).status_code == 422
    bad = post(api, "/judges", {**BODY, "params": {"criteria": []}})
    assert bad.status_code == 400
    assert bad.json()["error"]["code"] == "params_invalid"
    (listed,) = api.get("/api/v1/judges?name=Tone").json()
    assert listed["params"] == BODY["params"]
    assert api.get(f"/api/v1/judges/{ready}").json()["number"] == 1
    assert api.get("/api/v1/judges/999999").status_code == 404


def test_a_calibration_is_started_read_and_cancelled(api, ready):
    made = post(api, f"/judges/{ready}/calibrations", {"limit": 4})
    again = post(api, f"/judges/{ready}/calibrations", {})

    assert made.status_code == 202
    assert (made.json()["state"], made.json()["size"], made.json()["kappa"]) == ("running", 4, None)
    assert again.status_code == 409
    found = made.json()["id"]
    assert api.get(f"/api/v1/calibrations/{found}").json()["figures"] is None
    assert api.get(f"/api/v1/calibrations/{found}/answers?only=wrong").json() == []
    assert post(api, f"/calibrations/{found}/cancel", {}).json()["state"] == "cancelled"
    assert [row["id"] for row in api.get(f"/api/v1/judges/{ready}/calibrations").json()] == [found]
    assert AuditEvent.objects.filter(action="calibration.cancel").count() == 1


def test_gold_answers_are_listed_and_retired(api, ready):
    rows = api.get("/api/v1/gold-answers?limit=3").json()

    assert len(rows) == 3
    assert post(api, f"/gold-answers/{rows[0]['id']}/retire", {}).status_code == 204
    assert post(api, f"/gold-answers/{rows[0]['id']}/retire", {}).status_code == 409
    assert len(api.get("/api/v1/gold-answers").json()) == 3


@pytest.mark.parametrize("limit", [0, 1, 501, "x"])
def test_a_limit_that_makes_no_sense_is_refused(api, ready, limit):
    assert post(api, f"/judges/{ready}/calibrations", {"limit": limit}).status_code == 422


def test_warnings_of_a_suite_version_are_read(api, suite_version):
    assert api.get(f"/api/v1/suite-versions/{suite_version.pk}/judge-warnings").json() == []
    assert api.get("/api/v1/suite-versions/999999/judge-warnings").status_code == 404


def test_a_key_without_the_scope_changes_nothing(client, project, actor, ready):
    key = api_key_create(project=project, name="reader", scopes=["read"], by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {key.secret}"

    assert post(client, "/judges", {**BODY, "name": "Other"}).status_code == 403
    assert post(client, f"/judges/{ready}/calibrations", {}).status_code == 403
    assert post(client, "/gold-answers", GOLD).status_code == 403
    assert client.get("/api/v1/judges").status_code == 200


def test_another_project_s_judge_is_not_found(api, actor):
    other = Project.objects.create(name="Other", slug="other")
    theirs = type(actor)(project=other, name="eve", role=actor.role)
    judge = feedback.judge_save(project=other, name="Theirs", kind="judge", params=BODY["params"], by=theirs)

    assert api.get(f"/api/v1/judges/{judge.pk}").status_code == 404
    assert post(api, f"/judges/{judge.pk}/calibrations", {}).status_code == 404
    assert api.get("/api/v1/judges").json() == []
    assert Judge.objects.count() == 1
