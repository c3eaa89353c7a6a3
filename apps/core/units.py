"""Work units: planning, sending, reports, and the reaper that replaces what was lost.

One mechanism gives priority, cancel, resume and recovery: the row is the truth, at most two
units per worker slot are in flight, what is overdue gets a new attempt, and reports of old
attempts are discarded.
"""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.dispatch import dispatch, send_now
from apps.core.errors import Conflict
from apps.core.events import publish
from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.registries import unit_handlers, unit_runners
from apps.core.services import audit
from domain.contracts import UnitFailed, UnitFinished, UnitHeartbeat, UnitRequest, UnitStarted
from domain.contracts.base import Contract
from domain.scheduling import HEARTBEAT_LIMIT, START_LIMIT, is_silent, pause_after_failure, room
from domain.storable import storable

logger = logging.getLogger(__name__)

HELD = datetime(9000, 1, 1, tzinfo=UTC)  # not before its owner is resumed

Report = UnitStarted | UnitHeartbeat | UnitFinished | UnitFailed
REPORTS: dict[str, type[UnitStarted] | type[UnitHeartbeat] | type[UnitFinished] | type[UnitFailed]] = {
    "UnitStarted": UnitStarted,
    "UnitHeartbeat": UnitHeartbeat,
    "UnitFinished": UnitFinished,
    "UnitFailed": UnitFailed,
}


def unit_create(
    *,
    project: Project,
    kind: str,
    key: str,
    owner: str,
    queue: str,
    message: Contract,
    priority: int = 0,
    max_attempts: int = 5,
) -> WorkUnit:
    """Plan a unit; planning the same ``key`` again returns the row that exists."""
    unit, _ = WorkUnit.objects.get_or_create(
        key=key,
        defaults={
            "project": project,
            "kind": kind,
            "owner": owner,
            "queue": queue,
            "priority": priority,
            "payload": message.model_dump(mode="json"),
            "max_attempts": max_attempts,
        },
    )
    return unit


class Plan(NamedTuple):
    """One unit of many that are planned together."""

    key: str
    message: Contract


def units_create(
    *, project: Project, kind: str, owner: str, queue: str, plans: Iterable[Plan], priority: int = 0
) -> None:
    """``unit_create`` for many units of one owner, some hundreds at a time. Those that have room are sent
    at once, not at the next tick."""
    waiting = iter(plans)
    while chunk := list(islice(waiting, 500)):
        WorkUnit.objects.bulk_create(
            [
                WorkUnit(
                    key=plan.key,
                    project=project,
                    kind=kind,
                    owner=owner,
                    queue=queue,
                    priority=priority,
                    payload=plan.message.model_dump(mode="json"),
                )
                for plan in chunk
            ],
            ignore_conflicts=True,
        )
    dispatch("core.units_pump")


def units_hold(*, owner: str) -> int:
    """Send none of the owner's waiting units any more; what was sent goes on. Returns how many wait."""
    return WorkUnit.objects.filter(owner=owner, state=WorkUnit.State.PENDING).update(not_before=HELD)


def units_release(*, owner: str) -> int:
    """Let the owner's held units be sent again; returns how many."""
    waiting = WorkUnit.objects.filter(owner=owner, state=WorkUnit.State.PENDING, not_before=HELD)
    released = waiting.update(not_before=None)
    dispatch("core.units_pump")
    return released


def units_pump() -> int:
    """Send pending units while their queue has room; returns how many were sent."""
    sent = 0
    due = Q(not_before=None) | Q(not_before__lte=timezone.now())
    due_units = WorkUnit.objects.filter(
        due, queue__in=list(settings.WORKER_SLOTS), state=WorkUnit.State.PENDING
    )
    # Looked at first without a lock: every second nothing is waiting, and SQLite has one writer.
    queues = set(due_units.order_by().values_list("queue", flat=True).distinct())
    for queue, slots in settings.WORKER_SLOTS.items():
        if queue not in queues:
            continue
        with transaction.atomic():
            free = room(slots, WorkUnit.objects.filter(queue=queue).in_flight().count())
            if not free:
                continue
            pending = due_units.filter(queue=queue)
            for unit in pending.select_for_update().order_by("-priority", "pk")[:free]:
                unit.state, unit.attempt, unit.sent_at = WorkUnit.State.SENT, unit.attempt + 1, timezone.now()
                unit.worker, unit.progress, unit.started_at, unit.heartbeat_at = "", {}, None, None
                unit.save(
                    update_fields=[
                        "state",
                        "attempt",
                        "sent_at",
                        "worker",
                        "progress",
                        "started_at",
                        "heartbeat_at",
                    ]
                )
                request = UnitRequest(
                    unit_id=unit.pk, attempt=unit.attempt, kind=unit.kind, payload=_payload_of(unit)
                )
                _send_on_commit(request, queue)
                sent += 1
    return sent


def _payload_of(unit: WorkUnit) -> dict[str, Any]:
    handler = unit_handlers.get(unit.kind)
    return handler.renewed(unit) if handler and handler.renewed else unit.payload


def _send_on_commit(request: UnitRequest, queue: str) -> None:
    task = "core.run_unit" if request.kind in unit_runners else "workers.run_unit"
    transaction.on_commit(lambda: send_now(task, request.model_dump(mode="json"), queue=queue))


def units_reap() -> int:
    """Give a new attempt to every unit whose worker went silent; returns how many were found."""
    now = timezone.now()
    silent = WorkUnit.objects.filter(state=WorkUnit.State.RUNNING, heartbeat_at__lt=now - HEARTBEAT_LIMIT)
    unstarted = WorkUnit.objects.filter(state=WorkUnit.State.SENT, sent_at__lt=now - START_LIMIT)
    found = 0
    for unit_id in [*silent.values_list("pk", flat=True), *unstarted.values_list("pk", flat=True)]:
        with transaction.atomic():
            unit = WorkUnit.objects.select_for_update().get(pk=unit_id)
            lost = is_silent(unit.state, now, sent_at=unit.sent_at, heartbeat_at=unit.heartbeat_at)
            if lost and not (unit.state == WorkUnit.State.SENT and _queue_is_busy(unit, now)):
                found += 1
                _attempt_lost(unit, "The worker went silent.")
    return found


def _queue_is_busy(unit: WorkUnit, now: Any) -> bool:
    """A unit that waits behind one that is alive is not lost, only queued."""
    return (
        WorkUnit.objects.filter(
            queue=unit.queue, state=WorkUnit.State.RUNNING, heartbeat_at__gte=now - HEARTBEAT_LIMIT
        )
        .exclude(pk=unit.pk)
        .exists()
    )


def _attempt_lost(unit: WorkUnit, error: str, *, pause: timedelta = timedelta(0)) -> None:
    """Back to pending after ``pause``, or failed when no attempt is left. The caller holds the lock."""
    unit.error = error
    if unit.attempt >= unit.max_attempts:
        _close(unit, WorkUnit.State.FAILED)
        unit_handlers[unit.kind].failed(unit, error)
        return
    handler = unit_handlers.get(unit.kind)
    held = handler is not None and handler.is_held is not None and handler.is_held(unit)
    unit.state, unit.not_before = WorkUnit.State.PENDING, HELD if held else timezone.now() + pause
    unit.save(update_fields=["state", "error", "not_before"])
    publish(project=unit.project, topic=unit.owner, kind="UnitRetried", unit=unit.pk, attempt=unit.attempt)


def _close(unit: WorkUnit, state: str) -> None:
    unit.state, unit.finished_at = state, timezone.now()
    unit.save(update_fields=["state", "finished_at", "error", "result", "progress"])


def unit_report(*, report: dict[str, Any]) -> bool:
    """Apply one report of a worker; returns False when it came from an old attempt or says nothing new."""
    body = storable(report)
    message: Report = REPORTS[body.pop("type")].model_validate(body)
    with transaction.atomic():
        unit = (
            WorkUnit.objects.select_for_update().select_related("project").filter(pk=message.unit_id).first()
        )
        if unit is None or unit.attempt != message.attempt or unit.state not in ("sent", "running"):
            logger.info("report discarded unit=%s attempt=%s", message.unit_id, message.attempt)
            return False
        now = timezone.now()
        match message:
            case UnitStarted():
                unit.state, unit.started_at, unit.heartbeat_at = WorkUnit.State.RUNNING, now, now
                unit.worker = message.worker[:120]
                unit.save(update_fields=["state", "started_at", "heartbeat_at", "worker"])
            case UnitHeartbeat():
                unit.state, unit.heartbeat_at = WorkUnit.State.RUNNING, now
                if message.progress:
                    unit.progress = message.progress
                unit.save(update_fields=["state", "heartbeat_at", "progress"])
            case UnitFinished():
                unit.result, unit.error = message.result, ""
                _close(unit, WorkUnit.State.DONE)
                unit_handlers[unit.kind].finished(unit, message.result)
            case UnitFailed() if message.retryable:
                _attempt_lost(unit, message.error, pause=pause_after_failure(unit.attempt))
            case UnitFailed():
                unit.error = message.error
                _close(unit, WorkUnit.State.FAILED)
                unit_handlers[unit.kind].failed(unit, message.error)
    return True


def units_cancel(*, owner: str) -> int:
    """Cancel what is not finished; a running attempt's report will be discarded."""
    return (
        WorkUnit.objects.filter(owner=owner)
        .open()
        .update(state=WorkUnit.State.CANCELLED, finished_at=timezone.now())
    )


def unit_cancel(*, unit: WorkUnit, by: Actor) -> None:
    """Cancel one open unit. Its owner hears of it as of a failure, so that nothing waits for it forever."""
    with transaction.atomic():
        locked = WorkUnit.objects.select_for_update().get(pk=unit.pk)
        if locked.state not in ("pending", "sent", "running"):
            raise Conflict(f"This unit is {locked.get_state_display().lower()} already.", code="unit_closed")
        locked.error = f"Cancelled by {by.name}."
        _close(locked, WorkUnit.State.CANCELLED)
        if locked.kind in unit_handlers:
            unit_handlers[locked.kind].failed(locked, locked.error)
        audit(actor=by, action="unit.cancel", obj=locked)


def unit_retry(*, unit: WorkUnit, by: Actor | None = None) -> None:
    """Give a failed unit fresh attempts."""
    with transaction.atomic():
        locked = WorkUnit.objects.select_for_update().get(pk=unit.pk)
        if locked.state != WorkUnit.State.FAILED:
            state = locked.get_state_display().lower()
            raise Conflict(f"Only a failed unit can be retried; this one is {state}.")
        locked.state, locked.finished_at = WorkUnit.State.PENDING, None
        locked.max_attempts = locked.attempt + 5
        locked.save(update_fields=["state", "max_attempts", "finished_at"])
        if by is not None:
            audit(actor=by, action="unit.retry", obj=locked)
