"""Starting, pausing and aborting releases."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Event
from apps.versions import services
from apps.versions.models import Deployment, ModelVersion, Release, RoutingRevision
from apps.versions.selectors import routing_current
from domain.routing import assign
from tests.apps.versions.conftest import PLAN
from tests.apps.versions.traffic import load


def snapshot(project):
    return routing_current(project).snapshot


def test_promotion_needs_a_finished_eval(register, engines, actor):
    version = register("run1", evaluated=False)

    with pytest.raises(Conflict, match="has no finished evaluation"):
        services.release_start(candidate=version, reason="Try it", by=actor)
    with pytest.raises(Conflict, match="has no finished evaluation"):
        services.version_promote(version=version, reason="Try it", by=actor)

    assert not Release.objects.exists()
    version.refresh_from_db()
    assert version.state == "registered"


def test_evidence_of_another_kind_is_no_evaluation(register, engines, actor):
    version = register("run1", evaluated=False)
    services.evidence_record(
        version=version, kind="speed", source="bench:1", title="Speed", sentence="2.3 times faster."
    )

    with pytest.raises(Conflict, match="no finished evaluation"):
        services.release_start(candidate=version, reason="Try it", by=actor)


def test_a_release_starts_at_its_first_step(release, candidate, control, project):
    candidate.refresh_from_db()
    snap = snapshot(project)

    assert candidate.state == "candidate"
    assert (release.weight, release.warming) == (0.1, False)
    assert snap["release"] == {
        "id": release.pk,
        "number": 1,
        "salt": release.salt,
        "weight": 0.1,
        "segment": 0,
    }
    assert snap["arms"]["canary"]["version"] == candidate.number
    assert snap["arms"]["control"]["version"] == control.number


def test_starting_leaves_audit_and_event(release):
    assert AuditEvent.objects.get(action="release.start").reason == "Better on invoices"
    assert Event.objects.filter(kind="ReleaseStarted", topic=release.lineage_key).exists()


def test_a_release_warms_up_without_traffic_until_every_engine_holds_the_adapter(
    register, engines, actor, project
):
    version = register("run1", loaded=False)
    release = services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)
    assert snapshot(project)["release"] is None

    first = Deployment.objects.engines().first()
    first.loaded = [*first.loaded, "run1"]
    first.save()
    release = services.release_evaluate(release=release)
    assert (release.warming, release.weight) == (True, 0.0)
    assert "Waiting until" in release.reasons[0]

    load(version)
    release = services.release_evaluate(release=release)
    assert (release.warming, release.weight) == (False, 0.1)
    assert snapshot(project)["release"]["weight"] == 0.1


def test_a_second_release_is_refused_while_one_runs(release, register, actor):
    other = register("run2")

    with pytest.raises(Conflict, match=r"Release 1 of 1\.1 is still running"):
        services.release_start(candidate=other, reason="Try it", by=actor)


def test_what_is_in_service_cannot_be_released(control, engines, actor):
    with pytest.raises(Conflict, match="already in service"):
        services.release_start(candidate=control, reason="Try it", by=actor)


def test_an_adapter_that_left_the_store_is_refused(candidate, actor, store, monkeypatch, tmp_path):
    monkeypatch.setenv("FLYWHEEL_ARTIFACTS", f"file://{tmp_path}/empty")

    with pytest.raises(Refused, match="not in the artifact store"):
        services.release_start(candidate=candidate, reason="Try it", by=actor)


def test_an_edition_without_an_engine_is_refused(candidate, actor):
    Deployment.objects.filter(edition_kind="high_speed").delete()

    with pytest.raises(Refused, match="No engine serves the high-speed edition"):
        services.release_start(candidate=candidate, reason="Try it", by=actor)


def test_a_reason_is_needed(candidate, actor):
    with pytest.raises(Refused, match="Give a reason"):
        services.release_start(candidate=candidate, reason="  ", by=actor)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"steps": []}, "at least one step"),
        ({"steps": [{"weight": 0.5, "min_units": 1}, {"weight": 0.1, "min_units": 1}]}, "must rise"),
        ({"steps": [{"weight": 0.1, "min_units": 0}]}, "at least one unit"),
        ({"steps": [{"weight": 0.1, "min_units": 1.5}]}, "whole number"),
        ({"steps": [{"weight": 0.1}]}, "needs a weight"),
        ({"steps": [{"weight": float("nan"), "min_units": 5}]}, "weight"),
        ({"steps": [{"weight": 1.0, "min_units": 5}]}, "leave traffic on the control"),
        ({"alpha": 0.9}, "Error rates"),
        ({"margin": -1}, "margin"),
        ({"failure_signals": ["mood"]}, "not a failure signal"),
        ({"failure_signals": []}, "at least one signal"),
        ({"colour": 1}, "A plan has no"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(candidate, actor, plan, sentence):
    with pytest.raises(Refused, match=sentence):
        services.release_start(candidate=candidate, plan=plan, reason="Try it", by=actor)

    assert not Release.objects.exists()


def test_the_default_plan_is_10_then_50_per_cent(candidate, actor):
    release = services.release_start(candidate=candidate, reason="Try it", by=actor)

    assert [step["weight"] for step in release.plan["steps"]] == [0.1, 0.5]
    assert release.plan["alpha"] == 0.05


def test_abort_returns_all_traffic_and_no_unit_routes_to_the_canary(release, candidate, project, actor):
    before = snapshot(project)["release"]
    assert any(assign(before["salt"], f"unit-{i}", before["weight"]) == "canary" for i in range(200))

    ended = services.release_abort(release=release, reason="Wrong dataset", by=actor)

    snap = snapshot(project)
    assert (ended.state, ended.weight) == ("aborted", 0.0)
    assert snap["release"] is None
    assert snap["arms"]["canary"] is None
    assert all(assign(before["salt"], f"unit-{i}", ended.weight) == "control" for i in range(200))
    candidate.refresh_from_db()
    assert candidate.state == "registered"


def test_abort_with_no_release_running_is_a_no_op(release, control, project, actor):
    services.release_abort(release=release, reason="Wrong dataset", by=actor)
    revisions, audits = RoutingRevision.objects.count(), AuditEvent.objects.count()

    again = services.release_abort(release=release, reason="Again", by=actor)

    assert again.state == "aborted"
    assert (RoutingRevision.objects.count(), AuditEvent.objects.count()) == (revisions, audits)
    control.refresh_from_db()
    assert control.state == "in_service"


def test_an_aborted_version_can_be_released_again(release, candidate, actor):
    services.release_abort(release=release, reason="Wrong time", by=actor)

    again = services.release_start(candidate=candidate, plan=PLAN, reason="Now", by=actor)

    assert (again.number, again.state) == (2, "running")
    assert again.salt != release.salt


def test_pause_and_resume_are_idempotent_and_keep_the_traffic(release, project, actor):
    for _ in range(2):
        release = services.release_pause(release=release, reason="Lunch", by=actor)
    assert (release.paused, snapshot(project)["release"]["weight"]) == (True, 0.1)

    for _ in range(2):
        release = services.release_resume(release=release, reason="Back", by=actor)
    assert not release.paused
    assert AuditEvent.objects.filter(action__in=["release.pause", "release.resume"]).count() == 2


def test_a_release_that_has_ended_cannot_be_paused(release, actor):
    services.release_abort(release=release, reason="Enough", by=actor)

    with pytest.raises(Conflict, match="Release 1 is aborted"):
        services.release_pause(release=release, reason="Lunch", by=actor)


def test_one_version_in_service_holds_in_the_database(candidate, control):
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError), transaction.atomic():
        ModelVersion.objects.filter(pk=candidate.pk).update(state="in_service")
