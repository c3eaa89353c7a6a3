"""How far a turn is: its phases with their seconds, and what is left of the time it will take."""

from datetime import datetime
from typing import NamedTuple

from apps.core.models import Project
from apps.loop.models import DemoTurn
from apps.loop.turn.machine import PHASE_WORDS, PHASES

# Measured on two cores, in seconds; replaced by what the project's own last turn took.
USUAL_S = {
    "prepare": 10.0, "traffic": 30.0, "anonymize": 25.0, "label": 7.0, "assets": 11.0, "train": 150.0,
    "evaluate": 12.0, "release": 75.0, "in_service": 1.0, "damage": 2.0, "drill": 6.0, "report": 1.0,
}  # fmt: skip


class PhaseRow(NamedTuple):
    """``seconds`` is None while the phase has not ended, or where it was not measured."""

    words: str
    state: str  # done | running | waiting | failed | cancelled
    seconds: float | None


class Progress(NamedTuple):
    """Of a running turn; times in seconds."""

    number: int
    of: int
    words: str
    elapsed_s: float
    rest_s: float

    @property
    def total_s(self) -> float:
        return self.elapsed_s + self.rest_s


def phase_rows(turn: DemoTurn) -> list[PhaseRow]:
    """All phases in order. A turn that ran to its end did every one, whatever its report says."""
    names, spent = list(PHASES), turn.state.get("seconds", {})
    at = len(names) if turn.report is not None else names.index(turn.phase)
    return [
        PhaseRow(
            PHASE_WORDS[name],
            "done" if index < at else turn.status if index == at else "waiting",
            spent.get(name),
        )
        for index, name in enumerate(names)
    ]


def turn_progress(turn: DemoTurn, usual_s: dict[str, float], now: datetime) -> Progress:
    """Elapsed time, and the rest by what the phases usually take."""
    names = list(PHASES)
    at = names.index(turn.phase)
    here = max(0.0, usual_s[turn.phase] - (now - turn.phase_started_at).total_seconds())
    rest = here + sum(usual_s[name] for name in names[at + 1 :])
    elapsed = (now - turn.created_at).total_seconds()
    return Progress(at + 1, len(names), PHASE_WORDS[turn.phase], elapsed, rest)


def usual_seconds(project: Project) -> dict[str, float]:
    """What each phase took in the project's last finished turn, else what was measured elsewhere."""
    last = DemoTurn.objects.filter(project=project, status=DemoTurn.Status.DONE).first()
    return {**USUAL_S, **(last.state.get("seconds", {}) if last else {})}
