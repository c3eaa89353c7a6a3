from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.scheduling import MAX_PAUSE, is_silent, pause_after_failure, room

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.integers(0, 1000), st.integers(0, 5000))
def test_a_queue_never_has_more_than_two_units_per_slot_in_flight(slots: int, in_flight: int) -> None:
    free = room(slots, in_flight)

    assert free >= 0
    assert free == 0 or in_flight + free == 2 * slots


@pytest.mark.parametrize(
    ("state", "sent", "beat", "silent"),
    [
        ("running", 100, 5, False),
        ("running", 100, 30, True),
        ("running", 30, None, True),
        ("sent", 40, None, False),
        ("sent", 50, None, True),
        ("done", 500, 500, False),
        ("pending", None, None, False),
    ],
)
def test_silence_is_measured_from_the_last_sign_of_life(
    state: str, sent: int | None, beat: int | None, silent: bool
) -> None:
    sent_at, heartbeat_at = (None if s is None else NOW - timedelta(seconds=s) for s in (sent, beat))

    assert is_silent(state, NOW, sent_at=sent_at, heartbeat_at=heartbeat_at) is silent


@given(st.integers(1, 10_000))
def test_pauses_grow_to_a_minute(attempt: int) -> None:
    assert timedelta(0) < pause_after_failure(attempt) <= pause_after_failure(attempt + 1) <= MAX_PAUSE
