"""How often a probe alarms where nothing changed: replayed from recorded rounds.

Recorded rounds of an unchanged model are drawn with replacement into endpoint-quarters of 90 days, each
judged against one of several recorded references, with the trailing thresholds growing as they would in
service. What a bad reference does to all its rounds, and what consecutive rounds share, is in
it that way; what the recording never saw is not.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from domain.distributions import beta_quantile
from domain.drift.signal import ALPHA
from domain.drift.verdicts import IN_A_ROW, Reading, Round, read_round

ROUNDS_PER_DAY, DAYS = 4, 90
DAY_S = 86_400


class Quarter(NamedTuple):
    """90 days of one endpoint in which nothing changed."""

    rounds: int
    flags: int
    alarms: int


def most_alarms(every_s: float, tests: int) -> float:
    """Expected alarms in 90 days are at most this, if each of ``tests`` flags an unchanged round in at
    most ``ALPHA`` of cases: an alarm takes two flags, and expectations add up without independence."""
    return DAYS * DAY_S / every_s * tests * ALPHA / IN_A_ROW


def upper_rate(events: int, n: int, *, confidence: float = 0.95) -> float:
    """One-sided Clopper-Pearson bound on a rate, ``events`` of ``n`` seen; 0 of n gives about 3/n."""
    return 1.0 if events >= n else beta_quantile(confidence, events + 1, n - events)


def alarms_in(verdicts: Sequence[str]) -> int:
    """How many alarms begin: a run of flagged rounds is one alarm."""
    count = streak = 0
    for verdict in verdicts:
        if verdict == "flagged":
            streak += 1
            count += streak == IN_A_ROW
        elif verdict == "unchanged":
            streak = 0
    return count


def quarter_of(
    references: Sequence[Mapping[str, Any]],
    rounds: Sequence[Round],
    rng: np.random.Generator,
    *,
    length: int = ROUNDS_PER_DAY * DAYS,
    block: int = 1,
) -> Quarter:
    """One quarter drawn from recorded ``rounds`` (in order of time), judged by one of ``references``.

    ``block`` neighbours are drawn together, so that what is alike in consecutive rounds stays together.
    """
    reference = references[int(rng.integers(len(references)))]
    drawn: list[Round] = []
    while len(drawn) < length:
        at = int(rng.integers(len(rounds) - block + 1))
        drawn += rounds[at : at + block]
    trails: dict[str, list[float]] = {"logprobs": [], "border": []}
    verdicts = []
    for found in drawn[:length]:
        reading = read_round(reference, found, trails, rng)
        verdicts.append(str(reading.verdict))
        extend(trails, reading)
    return Quarter(length, verdicts.count("flagged"), alarms_in(verdicts))


def extend(trails: Mapping[str, list[float]], reading: Reading) -> None:
    """Add what an unchanged round showed to the trailing windows."""
    if reading.verdict != "unchanged":
        return
    for signal in reading.signals:
        if signal.name in trails and signal.value is not None:
            trails[signal.name].append(signal.detail.get("g", signal.value))
