"""When units of work go out and when they are lost. The database is the truth; a queue message is
only a hint, so that few are in flight and any of them may be lost."""

from datetime import datetime, timedelta

IN_FLIGHT_PER_SLOT = 2
HEARTBEAT_LIMIT = timedelta(seconds=25)
START_LIMIT = timedelta(seconds=45)
MAX_PAUSE = timedelta(seconds=60)


def room(slots: int, in_flight: int) -> int:
    """How many more units a queue may be sent: at most two in flight for each worker slot."""
    return max(0, IN_FLIGHT_PER_SLOT * slots - in_flight)


def is_silent(state: str, now: datetime, *, sent_at: datetime | None, heartbeat_at: datetime | None) -> bool:
    """Whether nothing was heard of a unit for too long: running without a heartbeat for 25 s (five
    beats), or sent and not started for 45 s. A sent unit may still only be queued behind another."""
    if state == "running":
        last = heartbeat_at or sent_at
        return last is not None and now - last > HEARTBEAT_LIMIT
    return state == "sent" and sent_at is not None and now - sent_at > START_LIMIT


def pause_after_failure(attempt: int) -> timedelta:
    """What failed at once would fail again at once: 2, 4, 8 … s, at most a minute."""
    return min(timedelta(seconds=2.0 ** min(attempt, 10)), MAX_PAUSE)
