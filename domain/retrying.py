"""When a request to somebody else's server is sent again, and after how long.

Exponential backoff with jitter (half of each pause is drawn, so that clients which failed together
do not come back together). What the server says in ``Retry-After`` is kept to, up to a limit: one
that asks for an hour is not waited for.
"""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BASE_S = 0.5
CAP_S = 30.0
RETRY_AFTER_CAP_S = 120.0

_NOT_IMPLEMENTED = 501


def may_pass(status: int) -> bool:
    """Whether the same request may succeed later: no answer (0), timed out, in conflict, too many, or
    a fault of the server, but for 501, which says that it never will."""
    return status in (0, 408, 409, 429) or (500 <= status < 600 and status != _NOT_IMPLEMENTED)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """The pause that a ``Retry-After`` header asks for: seconds, or an HTTP date from ``now`` on. A date
    that has passed is 0; None where the header says nothing that can be read."""
    text = (value or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds):
        return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def pause_s(attempt: int, *, draw: float, told_s: float | None = None) -> float:
    """Seconds between attempt ``attempt`` (from 1) and the next. ``draw`` is uniform in [0, 1),
    ``told_s`` what the server asked for; some of the backoff is added to it, as others were told the same.
    """
    backoff = min(CAP_S, BASE_S * 2.0 ** min(attempt - 1, 16))
    if told_s is None:
        return backoff * (0.5 + draw / 2)
    return min(told_s, RETRY_AFTER_CAP_S) + min(1.0, backoff) * draw
