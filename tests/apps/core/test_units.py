"""Work units: the row is the truth, a message only a hint."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.core import units
from apps.core.errors import Conflict
from apps.core.models import Event, Project, WorkUnit
from apps.core.registries import UnitHandler, unit_handlers
from domain.contracts import EvalBatchResult


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, Any]]:
    """What the handler of kind ``test`` was told."""
    calls: list[tuple[str, int, Any]] = []
    handler = UnitHandler(
        finished=lambda unit, result: calls.append(("finished", unit.pk, result)),
        failed=lambda unit, error: calls.append(("failed", unit.pk, error)),
    )
    monkeypatch.setitem(unit_handlers, "test", handler)
    return calls


def make_unit(project: Project, key: str = "k", **fields: Any) -> WorkUnit:
    message = EvalBatchResult(results_digest="0" * 64, counts={})
    return units.unit_create(
        project=project, kind="test", key=key, owner="tests.thing:1", queue="eval", message=message, **fields
    )


def start(unit: WorkUnit) -> None:
    unit.refresh_from_db()
    units.unit_report(
        report={"type": "UnitStarted", "unit_id": unit.pk, "attempt": unit.attempt, "worker": "w"}
    )


def test_planning_twice_finds_the_same_unit(project: Project) -> None:
    first, second = make_unit(project), make_unit(project)

    assert first == second


def test_at_most_two_units_per_slot_are_in_flight(
    project: Project, sent_messages: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    for number in range(5):
        make_unit(project, f"k{number}")

    with django_capture_on_commit_callbacks(execute=True):
        units.units_pump()
        units.units_pump()

    assert WorkUnit.objects.in_flight().count() == 2
    assert [message[0] for message in sent_messages] == ["workers.run_unit"] * 2


def test_what_is_planned_together_is_not_left_for_the_next_tick(
    project: Project, sent_messages: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    message = EvalBatchResult(results_digest="0" * 64, counts={})
    plans = [units.Plan(key=f"k{number}", message=message) for number in range(3)]

    with django_capture_on_commit_callbacks(execute=True):
        units.units_create(project=project, kind="test", owner="tests.thing:1", queue="eval", plans=plans)

    assert sent_messages == [("core.units_pump", (), "web")]


def test_what_is_released_is_not_left_for_the_next_tick(
    project: Project, sent_messages: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    make_unit(project)
    units.units_hold(owner="tests.thing:1")

    with django_capture_on_commit_callbacks(execute=True):
        units.units_release(owner="tests.thing:1")

    assert sent_messages == [("core.units_pump", (), "web")]


def test_a_tick_with_nothing_to_send_takes_no_lock(project: Project, django_assert_num_queries: Any) -> None:
    make_unit(project)
    units.units_hold(owner="tests.thing:1")

    with django_assert_num_queries(1):
        assert units.units_pump() == 0


def test_higher_priority_is_sent_first(project: Project) -> None:
    make_unit(project, "low")
    make_unit(project, "low2")
    urgent = make_unit(project, "high", priority=9)

    units.units_pump()

    urgent.refresh_from_db()
    assert urgent.state == "sent"


def test_a_finished_report_closes_the_unit_and_tells_its_owner(
    project: Project, heard: list[tuple[str, int, Any]]
) -> None:
    unit = make_unit(project)
    units.units_pump()
    start(unit)

    applied = units.unit_report(
        report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": {"n": 1}}
    )

    unit.refresh_from_db()
    assert applied
    assert (unit.state, unit.result) == ("done", {"n": 1})
    assert heard == [("finished", unit.pk, {"n": 1})]


def test_a_report_of_an_old_attempt_is_discarded(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project)
    units.units_pump()
    WorkUnit.objects.filter(pk=unit.pk).update(attempt=2)

    applied = units.unit_report(
        report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": {}}
    )

    assert not applied
    assert heard == []


def test_a_second_finished_report_counts_once(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project)
    units.units_pump()
    report = {"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": {}}

    answers = [units.unit_report(report=report), units.unit_report(report=report)]

    assert answers == [True, False]
    assert len(heard) == 1


def test_a_silent_worker_gives_the_unit_a_new_attempt(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project)
    units.units_pump()
    start(unit)
    WorkUnit.objects.filter(pk=unit.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))

    units.units_reap()
    units.units_pump()

    unit.refresh_from_db()
    assert (unit.state, unit.attempt) == ("sent", 2)
    assert heard == []
    assert Event.objects.filter(kind="UnitRetried").count() == 1


def test_a_heartbeat_keeps_a_unit_alive(project: Project) -> None:
    unit = make_unit(project)
    units.units_pump()
    start(unit)

    units.unit_report(
        report={"type": "UnitHeartbeat", "unit_id": unit.pk, "attempt": 1, "progress": {"n": 3}}
    )
    units.units_reap()

    unit.refresh_from_db()
    assert (unit.state, unit.progress) == ("running", {"n": 3})


def test_a_unit_that_waits_behind_a_living_one_is_not_lost(project: Project) -> None:
    running, waiting = make_unit(project, "a"), make_unit(project, "b")
    units.units_pump()
    start(running)
    WorkUnit.objects.filter(pk=waiting.pk).update(sent_at=timezone.now() - timedelta(minutes=5))

    units.units_reap()

    waiting.refresh_from_db()
    assert waiting.state == "sent"


def test_the_last_attempt_lost_fails_the_unit_and_tells_its_owner(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project, max_attempts=1)
    units.units_pump()
    start(unit)

    units.unit_report(report={"type": "UnitFailed", "unit_id": unit.pk, "attempt": 1, "error": "boom"})

    unit.refresh_from_db()
    assert (unit.state, unit.error) == ("failed", "boom")
    assert heard == [("failed", unit.pk, "boom")]


def test_a_final_failure_is_not_tried_again(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project)
    units.units_pump()

    units.unit_report(
        report={"type": "UnitFailed", "unit_id": unit.pk, "attempt": 1, "error": "no", "retryable": False}
    )

    unit.refresh_from_db()
    assert unit.state == "failed"
    assert heard == [("failed", unit.pk, "no")]


def test_a_failed_unit_can_be_retried_and_a_living_one_cannot(project: Project, heard: list[Any]) -> None:
    failed, living = make_unit(project, "a", max_attempts=1), make_unit(project, "b")
    units.units_pump()
    units.unit_report(report={"type": "UnitFailed", "unit_id": failed.pk, "attempt": 1, "error": "no"})

    units.unit_retry(unit=failed)

    failed.refresh_from_db()
    assert failed.state == "pending"
    with pytest.raises(Conflict, match="Only a failed unit"):
        units.unit_retry(unit=living)


def test_cancelling_an_owner_discards_what_its_workers_report_later(
    project: Project, heard: list[Any]
) -> None:
    unit = make_unit(project)
    units.units_pump()

    units.units_cancel(owner="tests.thing:1")
    applied = units.unit_report(
        report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": {}}
    )

    assert not applied
    assert heard == []


def test_a_fault_that_comes_back_at_once_waits_longer_each_time(project: Project, heard: list[Any]) -> None:
    unit = make_unit(project)
    units.units_pump()

    units.unit_report(report={"type": "UnitFailed", "unit_id": unit.pk, "attempt": 1, "error": "boom"})
    sent = units.units_pump()

    unit.refresh_from_db()
    assert sent == 0
    assert unit.not_before is not None
    assert unit.not_before > timezone.now()
