"""The work queue and the audit trail."""

from typing import Any

import pytest
from django.test import Client

from apps.core import registries
from apps.core.models import AuditEvent, Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit


def _unit(project: Project, key: str, **fields: Any) -> WorkUnit:
    defaults = {"kind": "eval_batch", "owner": "evals.run:1", "queue": "eval", "payload": {}}
    return WorkUnit.objects.create(project=project, key=key, **{**defaults, **fields})


def test_the_queue_names_every_state_even_when_empty(page: Client) -> None:
    text = page.get("/settings/work/").content.decode()

    assert "No work yet" in text
    assert all(f'href="?state={state}"' in text for state in WorkUnit.State.values)


def test_the_queue_is_filtered_by_the_url(page: Client, project: Project) -> None:
    _unit(project, "a", state="failed", error="Engine closed the stream.")
    _unit(project, "b", state="done", owner="training.run:7")

    failed = page.get("/settings/work/?state=failed").content.decode()
    found = page.get("/settings/work/?q=training.run:7").content.decode()

    assert "Engine closed the stream." in failed
    assert "training.run:7" not in failed.split("<tbody>")[1]
    assert "evals.run:1" not in found.split("<tbody>")[1]


def test_a_filter_that_means_nothing_is_ignored(page: Client, project: Project) -> None:
    _unit(project, "a")

    assert "1 unit" in page.get("/settings/work/?state=nonsense").content.decode()


def test_units_of_another_project_are_not_there(page: Client) -> None:
    unit = _unit(Project.objects.create(name="Foreign", slug="foreign"), "a", state="failed")

    assert page.get(f"/settings/work/{unit.pk}/").status_code == 404
    assert page.post(f"/settings/work/{unit.pk}/retry/").status_code == 404
    assert page.post(f"/settings/work/{unit.pk}/cancel/").status_code == 404


def test_a_unit_page_hides_its_token(page: Client, project: Project) -> None:
    unit = _unit(project, "a", payload={"target": {"token": "run-secret", "model": "pocket"}})

    text = page.get(f"/settings/work/{unit.pk}/").content.decode()

    assert "run-secret" not in text
    assert "pocket" in text


def test_a_failed_unit_is_retried(page: Client, project: Project) -> None:
    unit = _unit(project, "a", state="failed", attempt=5, max_attempts=5)

    page.post(f"/settings/work/{unit.pk}/retry/")

    unit.refresh_from_db()
    assert (unit.state, unit.max_attempts) == ("pending", 10)
    assert AuditEvent.objects.get().action == "unit.retry"


def test_a_finished_unit_is_not_retried_and_the_page_says_why(page: Client, project: Project) -> None:
    unit = _unit(project, "a", state="done")

    page.post(f"/settings/work/{unit.pk}/retry/")

    text = page.get("/settings/work/").content.decode()
    assert "Only a failed unit can be retried; this one is done." in text


def test_a_cancelled_unit_is_told_to_its_owner(
    page: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    handler = registries.UnitHandler(finished=lambda *_: None, failed=lambda unit, error: heard.append(error))
    monkeypatch.setitem(registries.unit_handlers, "eval_batch", handler)
    unit = _unit(project, "a", state="running")

    page.post(f"/settings/work/{unit.pk}/cancel/")

    unit.refresh_from_db()
    assert unit.state == "cancelled"
    assert heard == ["Cancelled by ada."]
    assert AuditEvent.objects.get().action == "unit.cancel"


def test_a_viewer_may_watch_but_not_cancel(client: Client, viewer: Actor) -> None:
    assert viewer.user is not None
    client.force_login(viewer.user)
    unit = _unit(viewer.project, "a")

    assert "Cancel unit" not in client.get("/settings/work/").content.decode()
    assert client.post(f"/settings/work/{unit.pk}/cancel/").status_code == 403


def test_the_audit_trail_is_filtered_by_who_what_and_words(page: Client, actor: Actor) -> None:
    audit(actor=actor, action="version.promote", reason="Better on billing.")
    audit(actor=actor, action="api_key.create")

    by_action = page.get("/settings/audit/?action=version.promote").content.decode()
    by_words = page.get("/settings/audit/?q=billing.").content.decode()

    for text in (by_action, by_words):
        assert "Better on billing." in text
        assert "api_key.create" not in text.split("<tbody>")[1]


def test_the_audit_trail_is_paged(page: Client, actor: Actor) -> None:
    for number in range(51):
        audit(actor=actor, action="test.step", number=number)

    second = page.get("/settings/audit/?page=2&action=test.step").content.decode()

    assert "51 entries" in second
    assert second.split("<tbody>")[1].count("<tr>") == 1
    assert "?page=1&amp;action=test.step" in second


@pytest.mark.parametrize(("url", "queries"), [("/settings/work/", 9), ("/settings/audit/", 8)])
def test_query_counts_do_not_grow_with_rows(
    page: Client, actor: Actor, url: str, queries: int, django_assert_num_queries: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("apps.core.context.nav_counts", {})
    for number in range(3):
        _unit(actor.project, str(number))
        audit(actor=actor, action="test.step")
    page.get(url)

    with django_assert_num_queries(queries):
        page.get(url)
