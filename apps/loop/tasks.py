"""Celery tasks of loop: the tick that keeps demo turns moving."""

from celery import shared_task

from apps.loop.services import turn_keys_revoke
from apps.loop.turn.machine import turns_advance


@shared_task(name="loop.turns_tick")
def turns_tick() -> None:
    turns_advance()
    turn_keys_revoke()
