"""One round in one word, and what two rounds in a row mean.

One flag is no alarm: two measured rounds in a row that differ are. A round that could not be measured, or
only in part without a flag, says nothing: it neither alarms nor clears.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from domain.drift.answers import Answer, answers_signal
from domain.drift.border import Counts, border_signal
from domain.drift.identity import identity_signal
from domain.drift.logprobs import Sample, logprobs_signal
from domain.drift.signal import Signal

RoundVerdict = Literal["unchanged", "flagged", "partial", "unmeasured"]
IN_A_ROW = 2


class Round(NamedTuple):
    """What came back. None stands for an answer that did not come; ``samples`` and ``counts`` are by
    prompt as in the reference, empty where the reference does not have that signal."""

    answers: Sequence[Answer | None]
    samples: Sequence[Sequence[Sample]] = ()
    counts: Sequence[Counts] = ()


class Reading(NamedTuple):
    verdict: RoundVerdict
    signals: list[Signal]
    reasons: list[str]


def read_round(
    reference: Mapping[str, Any],
    found: Round,
    trails: Mapping[str, Sequence[float]],
    rng: np.random.Generator,
) -> Reading:
    """Every signal that ``reference`` has. ``trails`` are, by signal, what unchanged rounds showed."""
    signals = [
        identity_signal(reference["identity"], found.answers),
        answers_signal(reference["answers"], found.answers),
    ]
    if reference.get("logprobs"):
        signals.append(logprobs_signal(reference["logprobs"], found.samples, trails.get("logprobs", ())))
    if reference.get("border"):
        signals.append(border_signal(reference["border"], found.counts, trails.get("border", ()), rng))
    return Reading(verdict_of(signals), signals, [reason for signal in signals for reason in signal.reasons])


def verdict_of(signals: Sequence[Signal]) -> RoundVerdict:
    states = {signal.state for signal in signals}
    if "flagged" in states:
        return "flagged"
    if "unmeasured" not in states:
        return "unchanged"
    # What an endpoint says of itself comes with any one answer; alone it measures no model.
    weighty = {signal.state for signal in signals if signal.name != "identity"}
    return "partial" if "unchanged" in weighty else "unmeasured"


def alarming(newest_first: Sequence[str]) -> bool:
    """Whether the last two rounds that say something are both flagged."""
    telling = [verdict for verdict in newest_first if verdict not in ("unmeasured", "partial")]
    return len(telling) >= IN_A_ROW and all(verdict == "flagged" for verdict in telling[:IN_A_ROW])
