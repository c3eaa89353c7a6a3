"""Units of traffic: once each, where first seen, by the arm they were assigned to."""

from apps.versions import services
from apps.versions.models import ReleaseUnit
from apps.versions.selectors import unit_counts


def observe(release, unit, **changes):
    fields = {"release_id": release.pk, "segment": 0, "unit": unit, "arm": "canary"} | changes
    return services.release_units_record(observations=[services.UnitObservation(**fields)])


def test_a_unit_counts_once_however_often_it_returns(release):
    for _ in range(5):
        observe(release, "u1")

    assert unit_counts(release) == {0: {"canary": (1, 0)}}
    assert ReleaseUnit.objects.get().operations == 5


def test_only_the_first_failure_of_a_unit_counts(release):
    observe(release, "u1", failure="error")
    observe(release, "u1", failure="correction")

    assert unit_counts(release) == {0: {"canary": (1, 1)}}
    assert ReleaseUnit.objects.get().failure == "error"


def test_a_failure_inside_one_batch_counts_whatever_its_place(release):
    services.release_units_record(
        observations=[
            services.UnitObservation(release.pk, 0, "u1", "control"),
            services.UnitObservation(release.pk, 0, "u1", "control", failure="error"),
            services.UnitObservation(release.pk, 0, "u1", "control"),
        ]
    )

    assert unit_counts(release) == {0: {"control": (1, 1)}}


def test_a_unit_stays_in_the_segment_where_it_was_first_seen(release):
    observe(release, "u1", segment=0)
    observe(release, "u1", segment=1)

    assert unit_counts(release) == {0: {"canary": (1, 0)}}


def test_a_failure_after_a_ramp_does_not_blame_the_arm_the_unit_left(release):
    observe(release, "u1", segment=0, arm="control")
    observe(release, "u1", segment=1, arm="canary", failure="error")

    assert unit_counts(release) == {0: {"control": (1, 0)}}


def test_late_feedback_on_an_earlier_operation_counts_where_it_happened(release):
    observe(release, "u1", segment=0)
    observe(release, "u1", segment=1)
    observe(release, "u1", segment=0, failure="negative_feedback", operations=0)

    assert unit_counts(release) == {0: {"canary": (1, 1)}}
    assert ReleaseUnit.objects.get().operations == 2


def test_a_signal_that_the_plan_does_not_name_is_no_failure(candidate, actor):
    release = services.release_start(
        candidate=candidate, plan={"failure_signals": ["error"]}, reason="Errors only", by=actor
    )

    observe(release, "u1", failure="correction")

    assert unit_counts(release) == {0: {"canary": (1, 0)}}


def test_shadow_traffic_and_ended_releases_are_left_out(release, actor):
    assert observe(release, "u1", arm="shadow") == 0
    services.release_abort(release=release, reason="Enough", by=actor)
    assert observe(release, "u2") == 0

    assert not ReleaseUnit.objects.exists()


def test_rows_of_the_spool_may_carry_more_than_is_needed(release):
    row = {"release_id": release.pk, "segment": 0, "unit": "u1", "arm": "canary", "latency_ms": 4}

    assert services.release_units_record(observations=[row]) == 1


def test_the_query_count_does_not_grow_with_the_rows(release, django_assert_max_num_queries):
    rows = [
        services.UnitObservation(release.pk, 0, f"u{i}", "control", failure="error" if i % 7 == 0 else "")
        for i in range(400)
    ]

    with django_assert_max_num_queries(10):
        services.release_units_record(observations=rows)

    assert unit_counts(release) == {0: {"control": (400, 58)}}
