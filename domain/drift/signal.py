"""What one signal says of one round, and how rarely it may be wrong."""

from typing import Any, Literal, NamedTuple

State = Literal["unchanged", "flagged", "unmeasured"]

# The chance that one signal flags a round in which nothing changed. Two statistical signals are asked
# in a round, so a round flags with at most 2 in 1,000; in 360 rounds (90 days, four a day) that is fewer
# than one flag, and an alarm takes two in a row. No independence of rounds is needed for that.
ALPHA = 1e-3
MIN_MEASURED = 0.8  # share of what a signal asked for that must have been answered
# A trailing threshold is set so many standard deviations above the mean of what unchanged rounds showed
# (arXiv 2512.03816 uses 12 over a window of 100).
SIGMAS, WINDOW = 12.0, 100


class Signal(NamedTuple):
    """``value`` above ``threshold`` flags, except for answers, where fewer matches than it do.

    ``n`` is how many observations were compared. ``reasons`` are sentences for people: why it flags, or
    why it could not be measured.
    """

    name: str
    state: State
    value: float | None
    threshold: float | None
    n: int
    reasons: list[str]
    detail: dict[str, Any]


def unmeasured(name: str, reason: str, n: int = 0) -> Signal:
    return Signal(name, "unmeasured", None, None, n, [reason], {})
