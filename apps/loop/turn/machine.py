"""Runs a turn's phases. Any worker may take over at any point: every chunk of a phase is stored
before the next begins, a lease keeps two workers apart, and repeating a chunk is harmless.

The moment at which the lease ends is also its token: whoever finds another moment in the row has
lost the turn, and stores nothing.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from traceback import extract_tb

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.dispatch import dispatch
from apps.core.events import publish
from apps.loop.models import DemoTurn, TurnLine
from apps.loop.turn import collecting, improving, releasing
from apps.loop.turn.context import Turn, TurnFailed
from clients.flywheel import ApiError

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=40)
RENEW = timedelta(seconds=10)
# A worker gives way after this long, so that turns of many projects cannot fill every slot.
SLICE_S = 15.0
# How long the API may be gone (a restarting process) before the turn gives up.
PATIENCE = timedelta(seconds=120)
# Nothing in a demo takes this long unless a process is missing.
PHASE_LIMIT = timedelta(minutes=30)
# A waiting phase looks every second; the page need not hear of each look.
TICK_S = 4.0

# A phase does a few seconds of work per call and returns True when it is done.
PHASES: dict[str, Callable[[Turn], bool]] = {
    "prepare": collecting.prepare,
    "traffic": collecting.traffic,
    "anonymize": collecting.anonymize,
    "label": collecting.label,
    "assets": collecting.assets,
    "train": improving.train,
    "evaluate": improving.evaluate,
    "release": releasing.release,
    "in_service": releasing.in_service,
    "damage": releasing.damage,
    "drill": releasing.drill,
    "report": releasing.report,
}
PHASE_WORDS = {
    "prepare": "Prepare engines, verifier and held-out cases",
    "traffic": "Users ask through the gateway",
    "anonymize": "Anonymize the failures",
    "label": "Label the failures",
    "assets": "Make tasks of the cases",
    "train": "Train an adapter",
    "evaluate": "Compare on held-out cases",
    "release": "Release by canary",
    "in_service": "Ask the gateway what serves",
    "damage": "Damage a copy",
    "drill": "Release the damaged copy",
    "report": "Write the report",
}

Status = DemoTurn.Status


class LeaseLost(Exception):
    """Another worker has the turn, or a person stopped it."""


def turns_advance() -> None:
    """Take every running turn that nobody holds and run each for one slice of time."""
    for turn_id in DemoTurn.objects.filter(status=Status.RUNNING).values_list("pk", flat=True):
        row = _take(turn_id)
        if row is not None:
            with Turn(row) as turn:
                _run(turn)


def _take(turn_id: int) -> DemoTurn | None:
    """Claim the lease; of several workers one succeeds."""
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    claimed = DemoTurn.objects.filter(free, pk=turn_id, status=Status.RUNNING).update(
        leased_until=now + LEASE
    )
    if not claimed:
        return None
    row = DemoTurn.objects.select_related("project").get(pk=turn_id)
    row.leased_until = now + LEASE
    return row


def _run(turn: Turn) -> None:
    """Chunk after chunk until the slice is over, the turn has ended, or the lease is lost."""
    turn.hold = lambda: _renew(turn.row)
    ends_at, told_at = time.monotonic() + SLICE_S, 0.0
    try:
        while turn.row.status == Status.RUNNING:
            done = _chunk(turn)
            tell = bool(done or turn.lines) or time.monotonic() - told_at > TICK_S
            told_at = time.monotonic() if tell else told_at
            give_way = time.monotonic() > ends_at
            _store(turn, done=done, tell=tell, give_way=give_way)
            if give_way:
                return
    except LeaseLost:
        logger.info("turn %s: lease lost in phase=%s", turn.row.pk, turn.row.phase)


def _chunk(turn: Turn) -> bool:
    """One call of the current phase. What stops the turn becomes its status and a sentence."""
    row = turn.row
    words = PHASE_WORDS[row.phase]
    try:
        done = PHASES[row.phase](turn)
    except LeaseLost:
        raise
    except TurnFailed as failure:
        _fail(turn, str(failure))
        return False
    except ApiError as error:
        now = timezone.now()
        silent_since = datetime.fromisoformat(turn.state.setdefault("silent_since", now.isoformat()))
        if error.is_passing and now - silent_since <= PATIENCE:
            turn.pause(1.0)
            return False
        _fail(turn, f"“{words}” stopped: {error.message}")
        return False
    except Exception as error:  # the turn must end in a state that a person can read
        # The message of an exception may quote captured text; where it came from does not.
        frames = " ".join(
            f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in extract_tb(error.__traceback__)
        )
        logger.error("turn %s phase=%s type=%s at=%s", row.pk, row.phase, type(error).__name__, frames)
        _fail(turn, f"“{words}” broke on our side ({type(error).__name__}). The worker's log says where.")
        return False
    turn.state.pop("silent_since", None)
    if not done and timezone.now() - row.phase_started_at > PHASE_LIMIT:
        minutes = PHASE_LIMIT.total_seconds() / 60
        _fail(turn, f"“{words}” was not done after {minutes:.0f} minutes. Is a worker missing?")
    return done


def _fail(turn: Turn, sentence: str) -> None:
    turn.row.status, turn.row.error = Status.FAILED, sentence[:2000]
    turn.say(f"Stopped: {sentence}")


def _renew(row: DemoTurn) -> None:
    """Keep the lease while a chunk takes long; cheap to call often."""
    assert row.leased_until is not None
    until = timezone.now() + LEASE
    if until - row.leased_until < RENEW:
        return
    mine = DemoTurn.objects.filter(pk=row.pk, status=Status.RUNNING, leased_until=row.leased_until)
    if not mine.update(leased_until=until):
        raise LeaseLost
    row.leased_until = until


def _store(turn: Turn, *, done: bool, tell: bool, give_way: bool) -> None:
    """Keep state and lines, move on or end, renew or return the lease: together or not at all."""
    row, now = turn.row, timezone.now()
    with transaction.atomic():
        fresh = DemoTurn.objects.select_for_update().get(pk=row.pk)
        if fresh.status != Status.RUNNING or fresh.leased_until != row.leased_until:
            raise LeaseLost
        TurnLine.objects.bulk_create(TurnLine(turn=row, phase=row.phase, text=text) for text in turn.lines)
        turn.lines.clear()
        if done:
            spent = (now - row.phase_started_at).total_seconds()
            row.state.setdefault("seconds", {})[row.phase] = round(spent, 1)
            _next_phase(row, now)
        ended = row.status != Status.RUNNING
        row.finished_at = now if ended else None
        row.leased_until = None if ended or give_way else now + LEASE
        row.save(
            update_fields=["state", "phase", "phase_started_at", "leased_until", "report", "status", "error",
                           "finished_at"]
        )  # fmt: skip
        if ended:
            say = (row.report or {}).get("sentence") or f"The demo turn stopped. {row.error}"
            publish(project=row.project, topic=row.lineage_key, kind="TurnEnded", say=say)
        elif tell:
            publish(project=row.project, topic=row.lineage_key, kind="TurnAdvanced", phase=row.phase)
        if give_way and not ended:
            dispatch("loop.turns_tick")


def _next_phase(row: DemoTurn, now: datetime) -> None:
    names = list(PHASES)
    if row.phase != names[-1]:
        row.phase, row.phase_started_at = names[names.index(row.phase) + 1], now
        return
    succeeded = bool(row.report and row.report["succeeded"])
    row.status = Status.DONE if succeeded else Status.FAILED
    row.error = "" if succeeded or not row.report else row.report["sentence"]
