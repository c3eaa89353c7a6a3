"""Promoting and rolling back by hand."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.versions import services
from apps.versions.models import Deployment, Evidence, RoutingRevision, ServiceChange
from apps.versions.selectors import (
    rollback_target,
    routing_current,
    version_in_service,
    versions_to_keep_loaded,
)


def test_promoting_moves_all_traffic_in_one_revision(candidate, control, project, actor):
    before = RoutingRevision.objects.count()

    services.version_promote(version=candidate, reason="Better everywhere", by=actor)

    control.refresh_from_db()
    assert version_in_service(project) == candidate
    assert control.state == "retired"
    assert routing_current(project).snapshot["arms"]["control"]["version"] == candidate.number
    assert RoutingRevision.objects.count() == before + 1
    assert AuditEvent.objects.get(action="version.promote", object_id=str(candidate.pk)).reason == (
        "Better everywhere"
    )


def test_promoting_twice_is_one_promotion(candidate, actor):
    for _ in range(2):
        services.version_promote(version=candidate, reason="Better", by=actor)

    assert ServiceChange.objects.filter(version=candidate).count() == 1


def test_promoting_without_evidence_must_be_said_and_is_recorded(candidate, actor):
    Evidence.objects.all().delete()

    services.version_promote(version=candidate, reason="Emergency", without_evidence=True, by=actor)

    assert ServiceChange.objects.get(version=candidate).without_evidence
    assert AuditEvent.objects.get(action="version.promote", object_id=str(candidate.pk)).detail[
        "without_evidence"
    ]


def test_promoting_a_version_that_no_engine_can_load_is_refused(candidate, project, control, actor, settings):
    Deployment.objects.engines().update(loaded=["pocket"], base_url="http://127.0.0.1:9")

    with pytest.raises(Refused, match="does not answer"):
        services.version_promote(version=candidate, reason="Better", by=actor)

    assert version_in_service(project) == control


def test_promoting_loads_the_adapter_first(register, served, actor, project):
    version = register("run9", loaded=False)
    services.engines_register(project=project, by=actor)

    services.version_promote(version=version, reason="Better", by=actor)

    assert all("run9" in fake.models for fake in served.values())
    assert version_in_service(project) == version


def test_promoting_the_candidate_of_a_running_release_ends_it(release, candidate, project, actor):
    services.version_promote(version=candidate, reason="Clear enough", by=actor)

    release.refresh_from_db()
    assert release.state == "promoted"
    assert routing_current(project).snapshot["release"] is None


def test_promoting_another_version_while_a_release_runs_is_refused(release, register, actor):
    other = register("run2")

    with pytest.raises(Conflict, match="Abort it first"):
        services.version_promote(version=other, reason="Now", by=actor)


def test_rolling_back_returns_to_the_previous_version_at_once(candidate, control, project, actor):
    services.version_promote(version=candidate, reason="Better", by=actor)
    before = RoutingRevision.objects.count()

    serving = services.version_roll_back(project=project, reason="Complaints", by=actor)

    candidate.refresh_from_db()
    assert serving == control == version_in_service(project)
    assert candidate.state == "retired"
    assert routing_current(project).snapshot["arms"]["control"]["version"] == control.number
    assert RoutingRevision.objects.count() == before + 1


def test_rolling_back_twice_goes_back_once(candidate, control, project, actor):
    services.version_promote(version=candidate, reason="Better", by=actor)

    for _ in range(2):
        services.version_roll_back(project=project, reason="Complaints", by=actor)

    assert version_in_service(project) == control
    assert ServiceChange.objects.filter(kind="roll_back").count() == 1


def test_rolling_back_needs_no_engine_and_no_analysis(candidate, control, project, actor):
    services.version_promote(version=candidate, reason="Better", by=actor)
    Deployment.objects.engines().update(healthy=False, loaded=[])

    assert services.version_roll_back(project=project, reason="Complaints", by=actor) == control


def test_rolling_back_aborts_a_running_release(candidate, control, project, actor, register):
    services.version_promote(version=candidate, reason="Better", by=actor)
    release = services.release_start(candidate=register("run2"), reason="Next", by=actor)

    services.version_roll_back(project=project, reason="Complaints", by=actor)

    release.refresh_from_db()
    assert release.state == "aborted"
    assert version_in_service(project) == control
    assert routing_current(project).snapshot["release"] is None


def test_the_first_version_has_nothing_to_go_back_to(control, project, actor):
    with pytest.raises(Conflict, match="no earlier version"):
        services.version_roll_back(project=project, reason="Complaints", by=actor)


def test_the_way_back_is_kept_loaded(candidate, control, project, actor):
    assert [v.number for v in versions_to_keep_loaded(project)] == ["1.0"]

    services.version_promote(version=candidate, reason="Better", by=actor)

    assert rollback_target(project) == control
    assert {v.number for v in versions_to_keep_loaded(project)} == {"1.0", "1.1"}


def test_the_candidate_of_a_running_release_is_kept_loaded(release, project):
    assert {v.number for v in versions_to_keep_loaded(project)} == {"1.0", "1.1"}
