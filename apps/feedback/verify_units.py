"""Batches of answers that workers have judged: whose they are decides what becomes of them."""

from collections.abc import Callable
from typing import Any

from apps.core.models import WorkUnit
from apps.feedback import agreements, gauntlet_runs, trials

_FINISHED: dict[str, Callable[[WorkUnit, dict[str, Any]], None]] = {
    "feedback.verifier": gauntlet_runs.check_finished,
    "feedback.trial": trials.trial_finished,
    "feedback.agreement": agreements.agreement_finished,
}
_FAILED: dict[str, Callable[[WorkUnit, str], None]] = {
    "feedback.verifier": gauntlet_runs.check_failed,
    "feedback.trial": trials.trial_failed,
    "feedback.agreement": agreements.agreement_failed,
}


def finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    _FINISHED[unit.owner.partition(":")[0]](unit, result)


def failed(unit: WorkUnit, error: str) -> None:
    _FAILED[unit.owner.partition(":")[0]](unit, error)
