"""Units that the web side's own worker runs, because they need the database or its keys.

The same rows, attempts, heartbeats and reaper as those of the heavy workers; only that the function is
found in ``registries.unit_runners`` and that its reports are applied at once.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone

from apps.core.errors import Refused, place_of
from apps.core.models import WorkUnit
from apps.core.registries import unit_runners
from apps.core.units import unit_report, units_pump
from domain.contracts import UnitRequest

logger = logging.getLogger(__name__)

QUEUE = "chores"
HEARTBEAT_S = 5.0
_TOLD_EVERY_S = 1.0


class UnitGone(Exception):
    """The unit was cancelled, or another attempt has taken its place: stop, and keep nothing."""


class UnitProgress:
    """What a runner calls now and then with how far it is; raises ``UnitGone``. Cheap: most calls only
    look at the clock."""

    def __init__(self, unit: WorkUnit) -> None:
        self._attempt = WorkUnit.objects.filter(pk=unit.pk, attempt=unit.attempt)
        self._told = 0.0

    def __call__(self, **progress: Any) -> bool:
        """Whether it was written down this time."""
        now = time.monotonic()
        if now - self._told < _TOLD_EVERY_S:
            return False
        self._told = now
        mine = self._attempt.filter(state=WorkUnit.State.RUNNING)
        if not mine.update(progress=progress, heartbeat_at=timezone.now()):
            raise UnitGone
        return True


def unit_run(*, message: Mapping[str, Any]) -> None:
    """Run one attempt of a unit. A message that comes twice, or late, does nothing."""
    request = UnitRequest.model_validate(message)
    attempt = WorkUnit.objects.filter(pk=request.unit_id, attempt=request.attempt)
    now = timezone.now()
    taken = attempt.filter(state=WorkUnit.State.SENT).update(
        state=WorkUnit.State.RUNNING,
        started_at=now,
        heartbeat_at=now,
        worker=f"{socket.gethostname()}:{os.getpid()}",
    )
    if not taken:
        return
    unit = attempt.select_related("project").get()
    ids = {"unit_id": unit.pk, "attempt": unit.attempt}
    try:
        with _heartbeat(unit):
            result = unit_runners[unit.kind](unit, UnitProgress(unit))
    except UnitGone:
        logger.info("unit given up unit=%s attempt=%s", unit.pk, unit.attempt)
    except Refused as refused:
        unit_report(report={"type": "UnitFailed", **ids, "error": refused.message, "retryable": False})
    except Exception as error:  # its text may hold what a customer wrote
        said = f"{type(error).__name__} at {place_of(error)}"
        logger.warning("unit failed unit=%s attempt=%s: %s", unit.pk, unit.attempt, said)
        unit_report(report={"type": "UnitFailed", **ids, "error": said, "retryable": True})
    else:
        unit_report(report={"type": "UnitFinished", **ids, "result": result})
    units_pump()


@contextmanager
def _heartbeat(unit: WorkUnit) -> Iterator[None]:
    """Say every few seconds that the attempt is alive, also while one statement takes long."""
    done = threading.Event()
    running = WorkUnit.objects.filter(pk=unit.pk, attempt=unit.attempt, state=WorkUnit.State.RUNNING)

    def beat() -> None:
        try:
            while not done.wait(HEARTBEAT_S):
                try:
                    running.update(heartbeat_at=timezone.now())
                except DatabaseError as error:  # the next beat may get through
                    logger.warning("unit heartbeat not written unit=%s: %s", unit.pk, type(error).__name__)
        finally:
            connection.close()  # this thread's own

    thread = threading.Thread(target=beat, name="unit-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=2.0)
