"""The machine: leases, what is stored when, what stops a turn."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.models import Event
from apps.loop.models import DemoTurn
from apps.loop.services import turn_cancel
from apps.loop.turn import machine
from apps.loop.turn.context import Turn, TurnFailed
from clients.flywheel import ApiError

Phase = Callable[[Turn], bool]


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> dict[str, Phase]:
    """The first two phases, to be replaced by a test; nothing pauses."""
    table: dict[str, Phase] = {"prepare": lambda turn: True, "report": lambda turn: True}
    monkeypatch.setattr(machine, "PHASES", table)
    monkeypatch.setattr(Turn, "pause", lambda self, seconds: None)
    return table


def _finish(turn: Turn) -> bool:
    turn.row.report = {"succeeded": True, "sentence": "It worked."}
    return True


def test_a_turn_runs_its_phases_in_order_to_its_end(row: DemoTurn, phases: dict[str, Phase]):
    seen: list[str] = []
    phases["prepare"] = lambda turn: seen.append("prepare") or True  # type: ignore[func-returns-value]
    phases["report"] = lambda turn: seen.append("report") or _finish(turn)  # type: ignore[func-returns-value]

    machine.turns_advance()

    row.refresh_from_db()
    assert seen == ["prepare", "report"]
    assert (row.status, row.leased_until, row.error) == ("done", None, "")
    assert row.finished_at is not None
    assert set(row.state["seconds"]) == {"prepare", "report"}


def test_a_report_without_success_fails_the_turn_with_its_sentence(row: DemoTurn, phases: dict[str, Phase]):
    def report(turn: Turn) -> bool:
        turn.row.report = {"succeeded": False, "sentence": "The turn did not succeed: 1.1 does not serve."}
        return True

    phases["report"] = report

    machine.turns_advance()

    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", "The turn did not succeed: 1.1 does not serve.")


def test_of_two_workers_one_takes_the_turn(row: DemoTurn):
    assert machine._take(row.pk) is not None
    assert machine._take(row.pk) is None


def test_a_killed_workers_turn_is_taken_over_after_the_lease(row: DemoTurn, phases: dict[str, Phase]):
    phases["report"] = _finish
    machine._take(row.pk)  # and then that worker dies

    machine.turns_advance()
    held = DemoTurn.objects.get(pk=row.pk).status
    DemoTurn.objects.filter(pk=row.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
    machine.turns_advance()

    assert held == "running"
    assert DemoTurn.objects.get(pk=row.pk).status == "done"


def test_state_and_lines_are_stored_after_every_chunk(row: DemoTurn, phases: dict[str, Phase]):
    stored: list[tuple[int, int]] = []

    def prepare(turn: Turn) -> bool:
        fresh = DemoTurn.objects.get(pk=turn.row.pk)
        stored.append((fresh.state.get("chunks", 0), fresh.lines.count()))
        turn.state["chunks"] = turn.state.get("chunks", 0) + 1
        turn.say(f"chunk {turn.state['chunks']}")
        return turn.state["chunks"] == 3

    phases["prepare"], phases["report"] = prepare, _finish

    machine.turns_advance()

    assert stored == [(0, 0), (1, 1), (2, 2)]


def test_a_worker_that_lost_its_lease_stores_nothing(row: DemoTurn, phases: dict[str, Phase]):
    def prepare(turn: Turn) -> bool:
        DemoTurn.objects.filter(pk=turn.row.pk).update(leased_until=timezone.now() + timedelta(hours=1))
        turn.state["mine"] = True
        turn.say("I did it")
        return True

    phases["prepare"] = prepare

    machine.turns_advance()

    row.refresh_from_db()
    assert row.state == {}
    assert (row.phase, row.status, row.lines.count()) == ("prepare", "running", 0)


def test_a_long_chunk_keeps_its_lease(row: DemoTurn, monkeypatch: pytest.MonkeyPatch):
    taken = machine._take(row.pk)
    assert taken is not None
    soon = timezone.now() + timedelta(seconds=5)
    DemoTurn.objects.filter(pk=row.pk).update(leased_until=soon)
    taken.leased_until = soon

    machine._renew(taken)

    row.refresh_from_db()
    assert row.leased_until == taken.leased_until > soon


def test_a_long_chunk_of_a_stopped_turn_ends(row: DemoTurn, actor):
    taken = machine._take(row.pk)
    assert taken is not None
    taken.leased_until = timezone.now()
    turn_cancel(turn=row, by=actor)

    with pytest.raises(machine.LeaseLost):
        machine._renew(taken)


def test_a_worker_gives_way_after_its_slice(
    row: DemoTurn, phases: dict[str, Phase], monkeypatch, sent_messages, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(machine, "SLICE_S", 0.0)
    phases["prepare"] = lambda turn: False
    sent_messages.clear()

    with django_capture_on_commit_callbacks(execute=True):
        machine.turns_advance()

    row.refresh_from_db()
    assert (row.status, row.leased_until) == ("running", None)
    assert ("loop.turns_tick", (), "web") in sent_messages


@pytest.mark.parametrize("status", [0, 429, 502, 503, 504])
def test_a_server_that_is_away_is_waited_for(row: DemoTurn, phases: dict[str, Phase], status: int):
    calls: list[int] = []

    def prepare(turn: Turn) -> bool:
        calls.append(1)
        if len(calls) < 4:
            raise ApiError(status, "unreachable", "nobody there")
        return True

    phases["prepare"], phases["report"] = prepare, _finish

    machine.turns_advance()

    row.refresh_from_db()
    assert (row.status, len(calls)) == ("done", 4)
    assert "silent_since" not in row.state


def test_patience_with_a_server_ends_even_across_workers(row: DemoTurn, phases: dict[str, Phase]):
    def prepare(turn: Turn) -> bool:
        raise ApiError(0, "unreachable", "http://127.0.0.1:1 does not answer: ConnectError")

    phases["prepare"] = prepare
    long_ago = timezone.now() - machine.PATIENCE - timedelta(seconds=1)
    DemoTurn.objects.filter(pk=row.pk).update(state={"silent_since": long_ago.isoformat()})

    machine.turns_advance()

    row.refresh_from_db()
    assert row.status == "failed"
    assert "does not answer" in row.error


def test_another_refusal_ends_the_turn_with_its_sentence(row: DemoTurn, phases: dict[str, Phase]):
    def prepare(turn: Turn) -> bool:
        raise ApiError(409, "release_running", "Release 3 of 1.2 is still running.")

    phases["prepare"] = prepare

    machine.turns_advance()

    row.refresh_from_db()
    assert row.status == "failed"
    assert row.error.endswith("stopped: Release 3 of 1.2 is still running.")
    assert row.lines.get().text.startswith("Stopped: ")


def test_a_phase_that_cannot_go_on_says_why(row: DemoTurn, phases: dict[str, Phase]):
    def prepare(turn: Turn) -> bool:
        raise TurnFailed("Too few failures to learn from.")

    phases["prepare"] = prepare

    machine.turns_advance()

    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", "Too few failures to learn from.")
    assert "Too few failures" in Event.objects.get(kind="TurnEnded").data["say"]


def test_an_unknown_exception_ends_the_turn_without_quoting_it(
    row: DemoTurn, phases: dict[str, Phase], caplog: pytest.LogCaptureFixture
):
    def prepare(turn: Turn) -> bool:
        raise ValueError("could not read: Dear Ms Karen Silva, 4111 1111 1111 1111")

    phases["prepare"] = prepare

    machine.turns_advance()

    row.refresh_from_db()
    assert row.status == "failed"
    assert "broke on our side (ValueError)" in row.error
    kept = [row.error, *row.lines.values_list("text", flat=True), caplog.text]
    kept += [str(event.data) for event in Event.objects.all()]
    assert not any("Silva" in text or "4111" in text for text in kept)
    assert "test_machine.py:" in caplog.text


def test_a_phase_that_never_ends_is_given_up(row: DemoTurn, phases: dict[str, Phase]):
    phases["prepare"] = lambda turn: False
    late = timezone.now() - machine.PHASE_LIMIT - timedelta(seconds=1)
    DemoTurn.objects.filter(pk=row.pk).update(phase_started_at=late)

    machine.turns_advance()

    row.refresh_from_db()
    assert row.status == "failed"
    assert "was not done after 30 minutes" in row.error


def test_a_stopped_turn_stays_stopped(row: DemoTurn, phases: dict[str, Phase], actor):
    def prepare(turn: Turn) -> bool:
        turn_cancel(turn=turn.row, by=actor)
        raise ApiError(401, "unauthenticated", "This API key is unknown or revoked.")

    phases["prepare"] = prepare

    machine.turns_advance()

    row.refresh_from_db()
    assert (row.status, row.error) == ("cancelled", "")


def test_looks_of_a_waiting_phase_are_not_all_told(row: DemoTurn, phases: dict[str, Phase]):
    left = iter(range(50))
    phases["prepare"] = lambda turn: next(left) == 49
    phases["report"] = _finish

    machine.turns_advance()

    assert Event.objects.filter(kind="TurnAdvanced").count() < 5


def test_every_phase_has_words():
    assert set(machine.PHASE_WORDS) == set(machine.PHASES)
