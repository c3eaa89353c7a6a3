"""Routing revisions: numbered, immutable, one for every change and none for no change."""

import pytest

from apps.core.errors import Refused
from apps.core.models import AuditEvent
from apps.versions import services
from apps.versions.models import RoutingRevision
from apps.versions.selectors import routing_current


def test_publishing_without_a_change_makes_no_revision(control, project, actor):
    before = routing_current(project)

    again = services.routing_publish(project=project, reason="Nothing", by=actor)

    assert again == before
    assert RoutingRevision.objects.count() == before.number


def test_before_any_version_there_is_nothing_to_publish(project, actor):
    assert services.routing_publish(project=project, reason="Nothing", by=actor) is None


def test_a_change_makes_the_next_number_and_leaves_the_last_as_it_was(control, project, actor):
    before = routing_current(project)

    after = services.routing_change(
        project=project, task_types={"interactive": "standard"}, reason="Calm", by=actor
    )

    before.refresh_from_db()
    assert (after.number, after.snapshot["revision"]) == (before.number + 1, before.number + 1)
    assert after.snapshot["task_types"] == {"interactive": "standard"}
    assert before.snapshot["task_types"]["interactive"] == "high_speed"
    assert AuditEvent.objects.get(action="routing.change").reason == "Calm"


def test_a_change_that_changes_nothing_leaves_no_trace(control, project, actor):
    services.routing_change(project=project, capture_success_rate=0.05, by=actor)

    assert RoutingRevision.objects.count() == 1
    assert not AuditEvent.objects.filter(action="routing.change").exists()


def test_the_snapshot_has_what_the_gateway_reads(control, project):
    snap = routing_current(project).snapshot

    assert set(snap) == {
        "revision", "project", "project_id", "arms", "release", "editions", "externals",
        "task_types", "default_edition", "capture", "failure_signals",
    }  # fmt: skip
    assert snap["arms"]["control"] == {
        "version_id": control.pk,
        "version": "1.0",
        "model": "pocket",
        "adapter_digest": "",
    }
    assert {kind: len(rows) for kind, rows in snap["editions"].items()} == {"standard": 1, "high_speed": 1}
    assert snap["capture"] == {"failures": True, "success_rate": 0.05}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"task_types": {"interactive": "fast"}}, "not an edition"),
        ({"task_types": {"a b": "standard"}}, "cannot name a task type"),
        ({"task_types": {}}, "at least one task type"),
        ({"default_edition": "fast"}, "not an edition"),
        ({"capture_success_rate": 1.5}, "between 0 and 1"),
        ({"capture_success_rate": float("nan")}, "between 0 and 1"),
        ({"failure_signals": ["mood"]}, "not a failure signal"),
    ],
)
def test_rules_that_make_no_sense_are_refused(control, project, actor, change, sentence):
    with pytest.raises(Refused, match=sentence):
        services.routing_change(project=project, by=actor, **change)

    assert RoutingRevision.objects.count() == 1


def test_a_running_release_keeps_its_failure_signals(release, project, actor):
    services.routing_change(project=project, failure_signals=["error"], by=actor)

    assert "correction" in routing_current(project).snapshot["failure_signals"]
