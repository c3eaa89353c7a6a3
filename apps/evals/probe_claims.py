"""What a probe may claim: how rarely it alarms falsely, and what it cannot see. One statement per mode.

Figures of rounds and quarters are those of ``bench.evals_probes``, as docs/probes.md tells them; bounds
are computed here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from apps.evals.probe_border import TEMPERATURES
from domain.drift.false_alarms import most_alarms, upper_rate
from domain.drift.logprobs import FLOOR


class Measured(NamedTuple):
    """Unchanged rounds that were recorded, those of them that flagged, quarters simulated from them, and
    those of these with an alarm. ``aside`` is what else must be known of them."""

    rounds: int
    flagged: int
    quarters: int
    alarming: int


class Claim(NamedTuple):
    """``mode`` is logprobs, border or answers. Sentences for people."""

    mode: str
    false_alarms: list[str]
    blind_to: str


MEASURED: dict[str, Measured | None] = {
    "logprobs": Measured(236, 0, 40, 0),
    "border": Measured(236, 1, 40, 0),
}
_BLIND_TO = {
    "logprobs": f"Changes that move log-probabilities by less than {FLOOR} nats on average.",
    "border": "Small changes, such as weights of eight bits, show in some rounds only, or never.",
    "warm": "Small changes, such as another adapter or weights of eight bits.",
    "answers": "Small changes, such as another adapter or weights of eight bits.",
}


def claim_of(reference: Mapping[str, Any], every_s: float) -> Claim:
    """Of a probe with this reference that asks every ``every_s`` seconds."""
    if reference.get("logprobs"):
        share = most_alarms(every_s, 1)
        return Claim(
            "logprobs",
            [
                f"Log-probabilities: measured, no proof. {_told('logprobs')}",
                f"Short answers: a bound. They make at most {_few(share)} false alarms in 90 days.",
            ],
            _BLIND_TO["logprobs"],
        )
    border = reference.get("border")
    tests = 2 if border else 1
    bound = (
        f"A bound: at most {_few(most_alarms(every_s, tests))} false alarms in 90 days at this interval, "
        "as long as the endpoint is served as when the reference was taken."
    )
    if not border:
        return Claim("answers", [bound, "Not measured by itself."], _BLIND_TO["answers"])
    warm = border["temperature"] > TEMPERATURES[0]
    measured = "Not measured at this temperature." if warm else _told("border")
    return Claim("border", [bound, measured], _BLIND_TO["warm" if warm else "border"])


def _told(mode: str) -> str:
    found = MEASURED[mode]
    if found is None:
        return "Not measured yet."
    rounds, flagged, quarters, alarming = found
    return (
        f"Of {rounds} unchanged rounds of the pocket model under changing load {flagged} flagged "
        f"(at most {_percent(flagged, rounds)}), of {quarters} quarters simulated from them {alarming} "
        f"alarmed (at most {_percent(alarming, quarters)}), at 95 % confidence."
    )


def _percent(events: int, n: int) -> str:
    return f"{100 * upper_rate(events, n):.1f} %"


def _few(count: float) -> str:
    return f"{count:.2g}" if count < 10 else f"{count:,.0f}"
