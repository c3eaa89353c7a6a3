"""The REST API of feedback, as programs use it."""

import hashlib
import json

import pytest
from django.utils import timezone

from apps.core.models import Project
from apps.core.permissions import system_actor
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase, Label
from tests.apps.feedback.conftest import RIGHT, exchange

pytestmark = pytest.mark.django_db


def post(client, path, body=None):
    return client.post(
        f"/api/v1{path}", json.dumps(body if body is not None else {}), content_type="application/json"
    )


def bare_case(project, name="c1") -> FailureCase:
    """A case without the cost of finding personal data."""
    capture = Capture.objects.create(
        project=project,
        external_id=name,
        source="api",
        state="anonymized",
        raw_expires_at=timezone.now(),
        content={"messages": [{"role": "user", "content": "hello"}], "answer": "x"},
    )
    return FailureCase.objects.create(project=project, capture=capture, title=name, family="f")


def test_captures_answer_for_each_item(api):
    answer = post(api, "/captures", {"items": [exchange("a"), {"external_id": "b"}, exchange("a")]})

    assert answer.status_code == 200
    assert [row["status"] for row in answer.json()["results"]] == ["created", "invalid", "exists"]


def test_body_over_the_limit_is_refused_with_the_error_shape(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    answer = post(api, "/captures", {"items": [exchange(answer="x" * 2000)]})

    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


@pytest.mark.parametrize("body", ["{", '{"items": 3}', "[]", '{"items": [1]}'])
def test_malformed_body_is_an_error_and_stores_nothing(api, body):
    answer = api.post("/api/v1/captures", body, content_type="application/json")

    assert answer.status_code in (200, 400, 422)
    if answer.status_code == 200:
        assert answer.json()["results"][0]["status"] == "invalid"
    else:
        assert "error" in answer.json()
    assert not Capture.objects.exists()


def test_feedback_is_taken(api):
    answer = post(api, "/feedback", {"items": [{"operation": "op_1", "value": False}]})

    assert answer.json()["results"] == [{"external_id": "op_1:rating", "status": "created", "message": ""}]


def test_queue_leases_labels_and_says_done(api, project):
    case = bare_case(project)

    taken = post(api, "/queue/next").json()
    assert (taken["state"], taken["case"]["id"]) == ("case", case.pk)
    assert taken["case"]["content"]["answer"] == "x"
    label = post(api, f"/cases/{case.pk}/label", {"kind": "wrong_value", "severity": "major"})

    assert label.status_code == 201
    assert label.json()["by"].startswith("key:")
    assert post(api, "/queue/next").json()["state"] == "done"


def test_locked_queue_says_when(api, project):
    case = bare_case(project)
    services.case_lease(case=case, by=system_actor(project, "somebody"))

    answer = post(api, "/queue/next").json()

    assert answer["state"] == "locked"
    assert answer["retry_at"]
    assert post(api, f"/cases/{case.pk}/lease").status_code == 409


def test_skip_undo_and_history(api, project):
    case = bare_case(project)
    assert post(api, f"/cases/{case.pk}/skip").status_code == 204
    made = post(api, f"/cases/{case.pk}/label", {"kind": "wrong_value", "severity": "minor"}).json()

    undone = post(api, f"/labels/{made['id']}/undo")

    assert undone.json()["state"] == "new"
    history = api.get(f"/api/v1/cases/{case.pk}").json()["labels"]
    assert history[0]["undone_at"] is not None


def test_illegal_choice_is_a_clear_error(api, project):
    case = bare_case(project)

    answer = post(api, f"/cases/{case.pk}/label", {"kind": "strange", "severity": "minor"})

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "kind_unknown"
    assert not Label.objects.exists()


def test_pages_of_rows_made_at_one_moment_hold_different_ids(api, project):
    now = timezone.now()
    for i in range(25):
        bare_case(project, f"c{i}")
    FailureCase.objects.update(created_at=now)

    seen: list[int] = []
    before = 0
    while rows := api.get(f"/api/v1/cases?limit=10&before={before}").json():
        seen += [row["id"] for row in rows]
        before = rows[-1]["id"]

    assert len(seen) == len(set(seen)) == 25


def test_cases_are_filtered(api, project):
    bare_case(project, "alpha")
    FailureCase.objects.filter(pk=bare_case(project, "beta").pk).update(state="labelled", kind="wrong_value")

    assert [row["title"] for row in api.get("/api/v1/cases?state=labelled").json()] == ["beta"]
    assert [row["title"] for row in api.get("/api/v1/cases?q=alp").json()] == ["alpha"]
    assert api.get("/api/v1/cases?kind=wrong_format").json() == []


def test_other_projects_are_out_of_reach(api):
    other = Project.objects.create(name="Other", slug="other")
    case = bare_case(other)

    assert api.get(f"/api/v1/cases/{case.pk}").status_code == 404
    assert (
        post(api, f"/cases/{case.pk}/label", {"kind": "wrong_value", "severity": "minor"}).status_code == 404
    )
    assert api.get("/api/v1/cases").json() == []


def test_key_without_the_scope_is_refused(client, actor):
    from apps.core.services import api_key_create

    made = api_key_create(project=actor.project, name="reader", scopes=["read"], by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {made.secret}"

    assert post(client, "/captures", {"items": [exchange()]}).status_code == 403
    assert post(client, "/queue/next").status_code == 403
    assert client.get("/api/v1/cases").status_code == 200


def test_from_case_to_dataset_over_the_api(api, labelled, store):
    made = post(api, "/families", {"name": "invoice_fields", "verifier_kind": "json_fields"})
    assert made.status_code == 201

    asset = post(api, f"/cases/{labelled.pk}/asset", {"family": "invoice_fields"}).json()
    body = {"name": "one", "split": asset["split"], "families": ["invoice_fields"]}
    dataset = post(api, "/datasets", body).json()
    export = api.get(f"/api/v1/datasets/{dataset['id']}/export")

    assert asset["correction"] == RIGHT
    assert hashlib.sha256(export.content).hexdigest() == dataset["digest"]
    assert [row["id"] for row in api.get("/api/v1/assets?origin=case").json()] == [asset["id"]]


def test_verifier_check_answers_with_its_unit(api, labelled, family, actor, store):
    services.asset_create(case=labelled, family=family, by=actor)

    answer = post(api, f"/verifiers/{family.verifier_id}/check")

    assert answer.status_code == 202
    assert api.get(f"/api/v1/verifiers/{family.verifier_id}").json()["entries"]


def test_rules_are_tried_and_revised(api):
    rules = {"deny": ["Heron"]}

    tried = post(api, "/anonymization-rules/try", {"rules": rules, "text": "Project Heron"}).json()
    saved = post(api, "/anonymization-rules", rules)

    assert tried["text"] == "Project <DENIED_1>"
    assert saved.status_code == 201
    assert api.get("/api/v1/anonymization-rules").json()["rules"]["deny"] == ["Heron"]


def test_secret_in_a_rule_sample_is_not_echoed_by_errors(api):
    answer = post(api, "/anonymization-rules/try", {"rules": {"deny": 3}, "text": "sk-1234567890abcdef1234"})

    assert answer.status_code == 422
    assert "sk-1234" not in answer.content.decode()


def test_export_of_many_tasks_reads_one_artifact(api, project, actor, store, django_assert_max_num_queries):
    from packs.starter.tasks import generate

    made = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    services.assets_import(
        project=project, family=made, tasks=generate("invoice_fields", seed=1, count=60), by=actor
    )
    dataset = services.dataset_create(project=project, name="many", families=["invoice_fields"], by=actor)

    with django_assert_max_num_queries(6):
        export = api.get(f"/api/v1/datasets/{dataset.pk}/export")

    assert export.content.count(b"\n") == dataset.count
