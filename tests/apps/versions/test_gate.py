"""The gate on live counts: hold, advance, promote, roll back."""

import pytest

from apps.core import registries
from apps.core.models import Alert, AuditEvent
from apps.versions import services
from apps.versions.models import (
    Deployment,
    ModelVersion,
    Release,
    ReleasePoint,
    RoutingRevision,
    ServiceChange,
)
from apps.versions.selectors import routing_current, version_in_service
from domain.routing import assign
from tests.apps.versions.traffic import traffic

GOOD = {"canary": (60, 2), "control": (540, 20)}
HALF = {"canary": (120, 4), "control": (120, 5)}
BAD = {"canary": (60, 40), "control": (540, 20)}


@pytest.fixture
def heard(monkeypatch):
    news = []
    listener = registries.ReleaseListener(lambda kind, what: news.append((kind, what.version.number)))
    monkeypatch.setattr("apps.versions.services.listeners.release_listeners", [listener])
    return news


def test_no_data_holds(release, control):
    release = services.release_evaluate(release=release)

    assert (release.state, release.verdict, release.step_index) == ("running", "hold", 0)
    assert release.reasons[0] == "No unit has reached the canary at this step yet."


def test_traffic_that_stops_holds(release):
    traffic(release, canary=(10, 0), control=(90, 0))
    first = services.release_evaluate(release=release)
    again = services.release_evaluate(release=release)

    assert first.verdict == again.verdict == "hold"
    assert ReleasePoint.objects.count() == 1, "nothing new, no new point"


def test_only_one_arm_with_data_holds(release):
    traffic(release, canary=(60, 0), control=(0, 0))

    assert services.release_evaluate(release=release).verdict == "hold"


def test_good_counts_advance_to_a_new_segment_and_revision(release, project):
    traffic(release, **GOOD)

    release = services.release_evaluate(release=release)

    snap = routing_current(project).snapshot["release"]
    assert (release.step_index, release.verdict) == (1, "advance")
    assert (snap["weight"], snap["segment"]) == (0.5, 1)


def test_after_the_last_step_the_gate_promotes(release, candidate, control, project, heard):
    traffic(release, **GOOD)
    services.release_evaluate(release=release)
    release.refresh_from_db()
    traffic(release, **HALF)

    release = services.release_evaluate(release=release)

    snap = routing_current(project).snapshot
    change = ServiceChange.objects.first()
    assert release.state == "promoted"
    assert version_in_service(project) == candidate
    assert (snap["arms"]["control"]["version"], snap["release"]) == (candidate.number, None)
    assert (change.version, change.previous, change.release) == (candidate, control, release)
    assert heard == [("promoted", candidate.number)]
    control.refresh_from_db()
    assert control.state == "retired"


def test_harm_rolls_back_at_once(release, candidate, control, project, heard):
    before = routing_current(project).snapshot["release"]
    traffic(release, **BAD)

    release = services.release_evaluate(release=release)

    snap = routing_current(project).snapshot
    assert (release.state, release.weight, release.units_at_end) == ("rolled_back", 0.0, 600)
    assert "The canary is worse" in release.reasons[0]
    assert version_in_service(project) == control
    assert (snap["release"], snap["arms"]["canary"]) == (None, None)
    assert all(assign(before["salt"], f"u{i}", release.weight) == "control" for i in range(200))
    assert Alert.objects.get(key=f"release-rolled-back:{release.pk}").level == "fail"
    assert AuditEvent.objects.filter(action="release.roll_back", object_id=str(release.pk)).count() == 1
    assert heard == [("rolled_back", candidate.number)]
    candidate.refresh_from_db()
    assert candidate.state == "retired"


def test_rolling_back_twice_changes_nothing(release, heard):
    traffic(release, **BAD)
    services.release_evaluate(release=release)
    revisions, audits = RoutingRevision.objects.count(), AuditEvent.objects.count()

    services.release_evaluate(release=release)

    assert (RoutingRevision.objects.count(), AuditEvent.objects.count()) == (revisions, audits)
    assert len(heard) == 1


def test_a_worse_canary_is_never_promoted_and_a_better_one_never_rolled_back(
    release, register, actor, engines
):
    """Swapped arms would do both; counts go by the arm that each unit was assigned to."""
    traffic(release, canary=(60, 2), control=(540, 300))
    better = services.release_evaluate(release=release)
    assert better.verdict == "advance"

    services.release_abort(release=better, reason="Next", by=actor)
    other = services.release_start(
        candidate=register("run2"), plan={"steps": [{"weight": 0.1, "min_units": 40}]}, reason="x", by=actor
    )
    traffic(other, canary=(60, 35), control=(540, 20))
    worse = services.release_evaluate(release=other)
    assert worse.state == "rolled_back"


def test_counts_go_by_the_assigned_arm_per_segment(release):
    traffic(release, canary=(60, 2), control=(540, 20))

    (segment,) = services.segments_of(release)

    assert segment.weight == 0.1
    assert (segment.canary.units, segment.canary.failures) == (60, 2)
    assert (segment.control.units, segment.control.failures) == (540, 20)


def test_few_units_hold_however_good(release):
    traffic(release, canary=(39, 0), control=(361, 0))

    release = services.release_evaluate(release=release)

    assert release.verdict == "hold"
    assert "39 of 40 units" in release.reasons[0]


def test_no_evidence_of_harm_is_not_evidence_of_safety(candidate, actor):
    release = services.release_start(
        candidate=candidate,
        plan={"steps": [{"weight": 0.1, "min_units": 40}], "margin": 0.01},
        reason="Tight",
        by=actor,
    )
    traffic(release, canary=(60, 2), control=(540, 20))

    release = services.release_evaluate(release=release)

    assert release.verdict == "hold"
    assert "the margin is 1.0" in release.reasons[0]


def test_a_paused_release_does_not_advance_but_still_rolls_back(release, actor):
    services.release_pause(release=release, reason="Lunch", by=actor)
    traffic(release, **GOOD)
    held = services.release_evaluate(release=release)
    assert (held.verdict, held.step_index) == ("hold", 0)
    assert held.reasons[0] == "Paused by a person."

    traffic(release, canary=(60, 50), control=(0, 0))
    assert services.release_evaluate(release=release).state == "rolled_back"


def test_an_engine_without_the_adapter_holds_the_promotion(release, project, control):
    traffic(release, **GOOD)
    services.release_evaluate(release=release)
    release.refresh_from_db()
    traffic(release, **HALF)
    Deployment.objects.filter(edition_kind="high_speed").update(loaded=["pocket"])

    held = services.release_evaluate(release=release)

    assert (held.state, held.verdict) == ("running", "hold")
    assert held.reasons[0] == "engine-high-speed does not hold the adapter now."
    assert version_in_service(project) == control


def test_a_gateway_on_an_older_revision_holds_the_next_step(release, monkeypatch):
    monkeypatch.setattr("apps.versions.selectors.routing_lags", [lambda project, number: ["gateway-2"]])
    traffic(release, **GOOD)

    held = services.release_evaluate(release=release)

    assert (held.verdict, held.step_index) == ("hold", 0)
    assert held.reasons[0] == "gateway-2 still serves an older revision."


def test_a_skewed_split_holds(release):
    traffic(release, canary=(400, 0), control=(400, 0))

    release = services.release_evaluate(release=release)

    assert release.verdict == "hold"
    assert any("planned shares" in reason for reason in release.reasons)


def test_a_release_that_breaks_does_not_break_the_tick(release, project, monkeypatch):
    monkeypatch.setattr(
        "apps.versions.services.gate.release_evaluate", lambda *, release: (_ for _ in ()).throw(ValueError)
    )

    assert services.releases_tick() == 0


def test_the_tick_evaluates_what_runs(release):
    assert services.releases_tick() == 1
    assert Release.objects.get().reasons


def test_evaluating_takes_few_queries(release, django_assert_max_num_queries):
    traffic(release, **GOOD)
    services.release_pause(release=release, reason="pin", by=services.gate.system_actor(release.project))

    with django_assert_max_num_queries(14):
        services.release_evaluate(release=release)


def test_a_listener_that_fails_undoes_the_promotion(release, project, control, monkeypatch):
    def fail(kind, news):
        raise RuntimeError

    monkeypatch.setattr(
        "apps.versions.services.listeners.release_listeners", [registries.ReleaseListener(fail)]
    )
    traffic(release, **BAD)

    with pytest.raises(RuntimeError):
        services.release_evaluate(release=release)

    release.refresh_from_db()
    assert release.state == "running"
    assert ModelVersion.objects.get(state="in_service") == control
