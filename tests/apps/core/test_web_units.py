"""Units that the web side runs itself: same rows, attempts and reaper, no message back."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.core import units, web_units
from apps.core.errors import Refused
from apps.core.models import Project, WorkUnit
from apps.core.registries import UnitHandler, unit_handlers, unit_runners
from domain.contracts.base import Contract


class Nothing(Contract):
    """A message without a word."""


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    calls: list[tuple[str, Any]] = []
    handler = UnitHandler(
        finished=lambda unit, result: calls.append(("finished", result)),
        failed=lambda unit, error: calls.append(("failed", error)),
    )
    monkeypatch.setitem(unit_handlers, "chore", handler)
    return calls


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, heard: list[Any]) -> Any:
    """Let units of the kind "chore" do this."""

    def put(work: Any) -> None:
        monkeypatch.setitem(unit_runners, "chore", work)

    put(lambda unit, progress: {"n": 1})
    return put


def planned(project: Project, key: str = "k") -> WorkUnit:
    return units.unit_create(
        project=project, kind="chore", key=key, owner="tests.thing:1", queue="chores", message=Nothing()
    )


def sent(unit: WorkUnit) -> dict[str, Any]:
    """The message that the pump sends for it."""
    units.units_pump()
    unit.refresh_from_db()
    return {"unit_id": unit.pk, "attempt": unit.attempt, "kind": "chore", "payload": {}}


def test_it_goes_to_the_web_side_s_worker_and_to_no_other(
    project: Project, runs: Any, sent_messages: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    planned(project)

    with django_capture_on_commit_callbacks(execute=True):
        units.units_pump()

    assert [(task, queue) for task, _, queue in sent_messages] == [("core.run_unit", "chores")]


def test_it_is_run_once_and_its_owner_is_told(project: Project, runs: Any, heard: list[Any]) -> None:
    unit = planned(project)
    message = sent(unit)

    web_units.unit_run(message=message)
    web_units.unit_run(message=message)

    unit.refresh_from_db()
    assert (unit.state, unit.result, heard) == ("done", {"n": 1}, [("finished", {"n": 1})])


def test_a_refusal_is_final_and_says_why(project: Project, runs: Any, heard: list[Any]) -> None:
    def refuse(unit: WorkUnit, progress: Any) -> dict[str, Any]:
        raise Refused("Line 3 is no case.")

    runs(refuse)
    unit = planned(project)

    web_units.unit_run(message=sent(unit))

    unit.refresh_from_db()
    assert (unit.state, heard) == ("failed", [("failed", "Line 3 is no case.")])


def test_another_error_is_tried_again_and_its_text_is_not_kept(
    project: Project, runs: Any, heard: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    def break_off(unit: WorkUnit, progress: Any) -> dict[str, Any]:
        raise ValueError("Maria Gonzalez")

    runs(break_off)
    unit = planned(project)

    web_units.unit_run(message=sent(unit))

    unit.refresh_from_db()
    assert (unit.state, heard) == ("pending", [])
    assert unit.error.startswith("ValueError at tests.apps.core.test_web_units:")
    assert "Gonzalez" not in caplog.text


def test_one_that_was_cancelled_stops_where_it_is_and_reports_nothing(
    project: Project, runs: Any, heard: list[Any]
) -> None:
    after: list[str] = []

    def work(unit: WorkUnit, progress: Any) -> dict[str, Any]:
        units.units_cancel(owner=unit.owner)
        progress(done=1)
        after.append("went on")
        return {}

    runs(work)
    unit = planned(project)

    web_units.unit_run(message=sent(unit))

    unit.refresh_from_db()
    assert (unit.state, after, heard) == ("cancelled", [], [])


def test_a_killed_worker_s_unit_is_run_again(project: Project, runs: Any, heard: list[Any]) -> None:
    unit = planned(project)
    old = sent(unit)
    WorkUnit.objects.update(state="running", heartbeat_at=timezone.now() - timedelta(minutes=1))
    units.units_reap()

    web_units.unit_run(message=sent(unit))
    web_units.unit_run(message=old)  # the broker gives it to somebody after all

    unit.refresh_from_db()
    assert (unit.state, unit.attempt, heard) == ("done", 2, [("finished", {"n": 1})])


def test_progress_is_written_and_is_a_sign_of_life(project: Project, runs: Any) -> None:
    seen: list[Any] = []

    def work(unit: WorkUnit, progress: Any) -> dict[str, Any]:
        WorkUnit.objects.update(heartbeat_at=None)
        seen.append(progress(done=3, total=9))
        seen.append(progress(done=4, total=9))  # within the same second: only the clock is looked at
        seen.append(WorkUnit.objects.get(pk=unit.pk))
        return {}

    runs(work)

    web_units.unit_run(message=sent(planned(project)))

    assert seen[:2] == [True, False]
    assert seen[2].progress == {"done": 3, "total": 9}
    assert seen[2].heartbeat_at is not None
