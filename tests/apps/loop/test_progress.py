"""How far a turn is."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.models import Project
from apps.loop.models import DemoTurn
from apps.loop.progress import USUAL_S, phase_rows, turn_progress, usual_seconds
from apps.loop.turn.machine import PHASES


def test_phases_before_the_current_one_are_done_and_those_after_wait(row: DemoTurn):
    row.phase, row.state = "anonymize", {"seconds": {"prepare": 3.5, "traffic": 40.0}}

    states = [(phase.state, phase.seconds) for phase in phase_rows(row)]

    assert states[:4] == [("done", 3.5), ("done", 40.0), ("running", None), ("waiting", None)]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_where_a_turn_stopped_is_shown(row: DemoTurn, status: str):
    row.phase, row.status = "traffic", status

    assert [phase.state for phase in phase_rows(row)][:3] == ["done", status, "waiting"]


def test_a_turn_that_failed_by_its_report_did_every_phase(row: DemoTurn):
    row.phase, row.status, row.report = "report", "failed", {"succeeded": False}

    assert {phase.state for phase in phase_rows(row)} == {"done"}


def test_the_rest_is_what_the_phases_usually_take(row: DemoTurn):
    now = timezone.now()
    usual = {name: 10.0 for name in PHASES}
    row.phase = "drill"
    row.created_at, row.phase_started_at = now - timedelta(seconds=100), now - timedelta(seconds=4)

    found = turn_progress(row, usual, now)

    assert found.elapsed_s == pytest.approx(100)
    assert found.rest_s == pytest.approx(6 + 10)
    assert (found.number, found.of) == (11, 12)
    assert found.total_s == pytest.approx(116)


def test_a_phase_that_takes_longer_than_usual_never_counts_backwards(row: DemoTurn):
    now = timezone.now()
    row.phase, row.phase_started_at = "report", now - timedelta(hours=1)

    assert turn_progress(row, USUAL_S, now).rest_s == 0


def test_the_projects_own_last_turn_is_the_best_guess(row: DemoTurn, project: Project):
    assert usual_seconds(project) == USUAL_S
    DemoTurn.objects.update(status="done", state={"seconds": {"train": 999.0}})

    assert usual_seconds(project) == {**USUAL_S, "train": 999.0}


def test_every_phase_has_a_usual_time():
    assert set(USUAL_S) == set(PHASES)
