"""Starting and stopping demo turns."""

import secrets

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.core.crypto import encrypt_bytes
from apps.core.dispatch import dispatch
from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import ApiKey, Project
from apps.core.permissions import Actor, system_actor
from apps.core.services import api_key_create, api_key_revoke, audit
from apps.loop.models import DemoTurn
from apps.loop.turn.machine import PHASES

# What the turn does over the API, and nothing more.
TURN_SCOPES = ("read", "capture", "label", "gateway", "evals", "training", "versions", "release")
MAX_SEED = 2**31 - 1


def turn_start(*, project: Project, seed: int | None = None, by: Actor) -> DemoTurn:
    """Start a turn; of two started at once, one is refused. Without a seed one is drawn."""
    for scope in TURN_SCOPES:
        by.require(scope)
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise Refused(f"Choose a seed between 0 and {MAX_SEED:,}.", code="seed_invalid")
    try:
        with transaction.atomic():
            key = api_key_create(project=project, name="demo turn", scopes=TURN_SCOPES, by=by)
            turn = DemoTurn.objects.create(
                project=project,
                seed=seed if seed is not None else secrets.randbelow(1_000_000),
                phase=next(iter(PHASES)),
                api_key=encrypt_bytes(key.secret.encode()),
                key_id=key.key.pk,
                created_by=by.name,
            )
            audit(actor=by, action="turn.start", obj=turn, seed=turn.seed)
            publish(project=project, topic=turn.lineage_key, kind="TurnStarted")
            dispatch("loop.turns_tick")
    except IntegrityError:
        raise Conflict("A demo turn is already running in this project.", code="turn_running") from None
    return turn


def turn_cancel(*, turn: DemoTurn, by: Actor) -> None:
    """Stop driving it. What it started (training, a release) goes on and can be stopped where it is."""
    by.require("training")
    with transaction.atomic():
        locked = DemoTurn.objects.select_for_update().get(pk=turn.pk)
        if locked.status != DemoTurn.Status.RUNNING:
            raise Conflict("This turn has ended.", code="turn_ended")
        locked.status, locked.finished_at = DemoTurn.Status.CANCELLED, timezone.now()
        locked.leased_until = None
        locked.save(update_fields=["status", "finished_at", "leased_until"])
        locked.lines.create(phase=locked.phase, text=f"Stopped by {by.name}.")
        audit(actor=by, action="turn.cancel", obj=locked)
        say = "The demo turn was stopped."
        publish(project=locked.project, topic=locked.lineage_key, kind="TurnEnded", say=say)


def turn_keys_revoke() -> int:
    """Keys of turns that have ended stop working; returns how many did now."""
    ended = DemoTurn.objects.exclude(status=DemoTurn.Status.RUNNING).values("key_id")
    keys = list(ApiKey.objects.active().filter(pk__in=ended).select_related("project"))
    for key in keys:
        api_key_revoke(key=key, by=system_actor(key.project, "demo turn"))
    return len(keys)
