"""The API's root: authentication, scopes, and the one error shape."""

from typing import Any

import pytest
from django.test import Client

from apps.core import services
from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor


def error_of(response: Any) -> dict[str, Any]:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "detail"}
    return body["error"]


@pytest.mark.django_db
def test_a_bad_key_gets_401_in_the_error_shape(client: Client) -> None:
    response = client.get("/api/v1/me", headers={"Authorization": "Bearer fw_wrong"})

    assert response.status_code == 401
    assert error_of(response)["message"] == "This API key is unknown or revoked."


def test_a_revoked_key_stops_working(client: Client, actor: Actor) -> None:
    made = services.api_key_create(project=actor.project, name="x", scopes=["read"], by=actor)
    headers = {"Authorization": f"Bearer {made.secret}"}
    assert client.get("/api/v1/me", headers=headers).status_code == 200

    services.api_key_revoke(key=made.key, by=actor)

    assert client.get("/api/v1/me", headers=headers).status_code == 401


def test_a_key_without_the_scope_gets_403(client: Client, actor: Actor) -> None:
    made = services.api_key_create(project=actor.project, name="x", scopes=["read"], by=actor)

    response = client.get("/api/v1/api-keys", headers={"Authorization": f"Bearer {made.secret}"})

    assert response.status_code == 403
    assert "admin" in error_of(response)["message"]


def test_an_unknown_path_gets_the_error_shape(api: Client) -> None:
    assert error_of(api.get("/api/v1/nothing"))["code"] == "not_found"


def test_invalid_input_names_the_field_and_never_repeats_the_value(api: Client) -> None:
    response = api.post(
        "/api/v1/api-keys", {"name": 5, "scopes": "SECRET-TEXT"}, content_type="application/json"
    )

    assert response.status_code == 422
    assert "SECRET-TEXT" not in response.content.decode()
    assert any("scopes" in field["at"] for field in error_of(response)["detail"]["fields"])


def test_malformed_json_is_a_clear_400(api: Client) -> None:
    response = api.post("/api/v1/api-keys", "{nope", content_type="application/json")

    assert response.status_code == 400
    assert error_of(response)["code"] == "bad_request"


def test_another_projects_objects_do_not_exist(api: Client, admin: Any) -> None:
    other = Project.objects.create(name="Other", slug="other")
    unit = WorkUnit.objects.create(
        project=other, kind="k", key="x", owner="o", queue="eval", payload={}, state="failed"
    )

    assert api.post(f"/api/v1/units/{unit.pk}/retry").status_code == 404


def test_the_openapi_document_and_its_page_are_served(page: Client) -> None:
    document = page.get("/api/v1/openapi.json")

    assert document.status_code == 200
    assert "/api/v1/me" in document.json()["paths"]
    assert page.get("/api/v1/docs").status_code == 200


def test_a_signed_in_person_may_read_but_not_post_without_csrf(admin: Any, project: Project) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)

    assert strict.get("/api/v1/me").status_code == 200
    response = strict.post(
        "/api/v1/api-keys", {"name": "x", "scopes": ["read"]}, content_type="application/json"
    )
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/suites", {"name": "x", "description": "half of a pair: \ud800"}),
        ("/api/v1/loop/turns", {"seed": 2**63}),
        ("/api/v1/queue/next", {"family": "\ud800"}),
    ],
)
def test_a_value_that_no_column_holds_is_the_callers_error(api: Client, path: str, body: Any) -> None:
    response = api.post(path, body, content_type="application/json")

    assert response.status_code == 422
    assert error_of(response)["code"] == "invalid"


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**60])
def test_an_id_beyond_64_bits_is_nobodys(api: Client, number: int) -> None:
    for path in (f"suites/{number}/versions/1/export", f"runs/{number}", f"versions/{number}"):
        response = api.get(f"/api/v1/{path}")

        assert response.status_code == 404
        assert error_of(response)["code"] == "not_found"
