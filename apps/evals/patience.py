"""Waiting for a rate limit within a bound, and counting what was asked."""

import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_LIMITED = (429, 503)
_FIRST_WAIT_S = 1.0


class Spent(NamedTuple):
    requests: int
    prompt_tokens: int
    completion_tokens: int


class Tally:
    """Requests and tokens of one listener, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._prompt = self._completion = 0

    def add_request(self) -> None:
        with self._lock:
            self._requests += 1

    def add_tokens(self, prompt: int, completion: int) -> None:
        with self._lock:
            self._prompt += prompt
            self._completion += completion

    @property
    def spent(self) -> Spent:
        with self._lock:
            return Spent(self._requests, self._prompt, self._completion)


class Patience:
    """Seconds that may be waited for rate limits, all waits together. Waits of several threads at the
    same time count once: the limit ends for all of them at its latest end."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._left_s = seconds
        self._until_s = 0.0

    def wait(self, seconds: float) -> bool:
        """Wait, or say at once that it would be longer than what is left."""
        with self._lock:
            now = time.monotonic()
            until = max(self._until_s, now + seconds)
            more = until - max(self._until_s, now)
            if more > self._left_s:
                return False
            self._left_s -= more
            self._until_s = until
        time.sleep(max(0.0, until - now))
        return True


def wait_asked(status: int, retry_after: str | None, attempt: int) -> float | None:
    """Seconds to wait before asking again; None if the answer is no rate limit.

    Without a header the waits double from one second. An unavailable endpoint (503) is a rate limit only
    if it says when to come back.
    """
    if status not in _LIMITED or (status == 503 and retry_after is None):
        return None
    told = _seconds(retry_after)
    return told if told is not None else float(_FIRST_WAIT_S * 2 ** min(attempt, 10))


def _seconds(retry_after: str | None) -> float | None:
    """A ``Retry-After`` header: seconds or a date."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.replace(".", "", 1).isdecimal() and len(text) < 12:
        return max(float(text), 0.05)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year that no calendar has
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.05)
