"""Instances, losses and limits as rows, and over the REST API."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from apps.core.models import Alert, ApiKey, AuditEvent, Project
from apps.core.permissions import Actor
from apps.core.services import api_key_create
from apps.gateway.limits import LimitKeeper
from apps.gateway.models import GatewayInstance, KeyLimit
from apps.gateway.reporting import InstanceReporter, goodbye
from apps.gateway.snapshot import Snapshot
from apps.versions.models import RoutingRevision

pytestmark = pytest.mark.django_db


def gateway(**lost: int) -> Any:
    by_project = {int(key.removeprefix("p")): count for key, count in lost.items()}
    spool = SimpleNamespace(lost=sum(by_project.values()), lost_by_project=by_project)
    return SimpleNamespace(
        name="web-1", started_at=timezone.now(), limits=LimitKeeper(), spool=spool, keys_used=set()
    )


def test_a_key_that_the_gateway_served_shows_when_it_was_used(actor: Actor) -> None:
    used, idle = (
        api_key_create(project=actor.project, name=name, scopes=["gateway"], by=actor).key
        for name in ("used", "idle")
    )
    process = gateway()
    process.keys_used.add(used.pk)

    InstanceReporter()(process, Snapshot())

    used.refresh_from_db()
    idle.refresh_from_db()
    assert used.last_used_at is not None
    assert idle.last_used_at is None
    assert process.keys_used == set()


def test_a_process_reports_at_once_when_its_revision_changes(project: Project) -> None:
    report = InstanceReporter()
    process = gateway()
    report(process, Snapshot({project.pk: {"revision": 1}}))
    first = GatewayInstance.objects.get().seen_at

    report(process, Snapshot({project.pk: {"revision": 1}}))
    unchanged = GatewayInstance.objects.get().seen_at
    report(process, Snapshot({project.pk: {"revision": 2}}))

    assert unchanged == first
    assert GatewayInstance.objects.get().revisions == {str(project.pk): 2}


def test_losses_raise_one_alert_that_counts(project: Project) -> None:
    report = InstanceReporter()
    process = gateway()
    report(process, Snapshot())
    assert not Alert.objects.exists()

    for lost in (3, 5):
        process.spool.lost, process.spool.lost_by_project = lost, {project.pk: lost}
        report(process, Snapshot())

    alert = Alert.objects.get()
    assert alert.level == "fail"
    assert alert.detail.startswith("5 operations")
    assert GatewayInstance.objects.get().rows_lost == 5


def test_a_process_that_ends_leaves_the_list(project: Project) -> None:
    InstanceReporter()(gateway(), Snapshot())

    goodbye("web-1")

    assert not GatewayInstance.objects.exists()


def test_the_api_shows_processes_revisions_spool_and_losses(api: Any, project: Project) -> None:
    RoutingRevision.objects.create(project=project, number=2, snapshot={}, actor="t")
    process = gateway(**{f"p{project.pk}": 4})
    InstanceReporter()(process, Snapshot({project.pk: {"revision": 1}}))

    body = api.get("/api/v1/gateway").json()

    assert body["revision"] == 2
    assert body["all_on_revision"] is False
    assert body["instances"][0]["revision"] == 1
    assert body["losses"][0].startswith("4 operations")
    assert set(body["spool"]) == {"files", "bytes", "oldest_s"}


def test_without_a_process_it_is_unknown_whether_all_are_on_the_revision(api: Any, project: Project) -> None:
    RoutingRevision.objects.create(project=project, number=1, snapshot={}, actor="t")

    assert api.get("/api/v1/gateway").json()["all_on_revision"] is None


def test_limits_of_a_key_are_set_shown_and_cleared(api: Any, project: Project) -> None:
    key = ApiKey.objects.get()
    address = f"/api/v1/api-keys/{key.pk}/limits"
    limits = {"requests_per_minute": 10, "tokens_per_minute": 20, "in_flight": 3}

    made = api.put(address, limits, content_type="application/json")
    cleared = api.delete(address)

    assert made.json() == {**limits, "own": True}
    assert cleared.status_code == 204
    assert api.get(address).json()["own"] is False
    assert not KeyLimit.objects.exists()
    assert list(
        AuditEvent.objects.filter(action__startswith="key_limit").values_list("action", flat=True)
    ) == [
        "key_limit.clear",
        "key_limit.set",
    ]


@pytest.mark.parametrize("value", [0, -1, 3_000_000_000])
def test_an_impossible_limit_is_refused(api: Any, project: Project, value: int) -> None:
    body = {"requests_per_minute": value, "tokens_per_minute": 20, "in_flight": 3}

    response = api.put(
        f"/api/v1/api-keys/{ApiKey.objects.get().pk}/limits", body, content_type="application/json"
    )

    assert response.status_code == 422
