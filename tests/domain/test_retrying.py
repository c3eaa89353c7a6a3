"""When a request is sent again, and after how long."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.retrying import CAP_S, RETRY_AFTER_CAP_S, may_pass, pause_s, retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [0, 408, 409, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_sent_again(status: int) -> None:
    assert may_pass(status)


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 413, 422, 501, 600])
def test_what_stays_is_not_sent_again(status: int) -> None:
    assert not may_pass(status)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 30 Nov 2026 12:00:05 -0000", 5.0),
        ("soon", None),
        ("", None),
        (None, None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("Mon, 30 Feb 2026 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


def test_pauses_double_up_to_a_cap() -> None:
    assert [pause_s(attempt, draw=1.0) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_s(60, draw=1.0) == CAP_S


@given(attempt=st.integers(1, 10_000), draw=st.floats(0, 1, exclude_max=True))
def test_half_of_a_pause_is_drawn(attempt: int, draw: float) -> None:
    whole = pause_s(attempt, draw=1.0)

    assert whole / 2 <= pause_s(attempt, draw=draw) <= whole


@given(told=st.floats(0, 1e9), draw=st.floats(0, 1, exclude_max=True), attempt=st.integers(1, 20))
def test_what_the_server_asks_for_is_kept_to_and_capped(told: float, draw: float, attempt: int) -> None:
    pause = pause_s(attempt, draw=draw, told_s=told)

    assert min(told, RETRY_AFTER_CAP_S) <= pause <= RETRY_AFTER_CAP_S + 1.0
