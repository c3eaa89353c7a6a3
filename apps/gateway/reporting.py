"""What a gateway process tells the database about itself, from the snapshot's thread.

At once when its revisions or its losses change, else every five seconds: a release waits for the
former, and a database should not be written twice a second for nothing.
"""

import logging
import time
from datetime import datetime
from typing import Protocol

from django.db import close_old_connections

from apps.gateway import services
from apps.gateway.limits import LimitKeeper
from apps.gateway.snapshot import Snapshot
from apps.gateway.spool import Spool

logger = logging.getLogger(__name__)

EVERY_S = 5.0


class Reported(Protocol):
    """What is told of a gateway process. ``keys_used`` are the ids of keys since the last report."""

    name: str
    started_at: datetime
    limits: LimitKeeper
    spool: Spool
    keys_used: set[int]


class InstanceReporter:
    def __init__(self) -> None:
        self._revisions: dict[int, int] | None = None
        self._losses: dict[int, int] = {}
        self._reported_at = 0.0

    def __call__(self, gateway: Reported, snapshot: Snapshot) -> None:
        revisions, losses = snapshot.revisions(), dict(gateway.spool.lost_by_project)
        now = time.monotonic()
        if revisions == self._revisions and losses == self._losses and now - self._reported_at < EVERY_S:
            return
        gateway.limits.forget_idle()
        services.instance_report(
            name=gateway.name,
            started_at=gateway.started_at,
            revisions=revisions,
            in_flight=gateway.limits.in_flight(),
            rows_lost=gateway.spool.lost,
        )
        used, gateway.keys_used = gateway.keys_used, set()
        services.keys_used(key_ids=used)
        grown = {
            project_id: count for project_id, count in losses.items() if count != self._losses.get(project_id)
        }
        if grown:
            services.losses_alert(losses=grown, cause="disk", where=gateway.name)
        self._revisions, self._losses, self._reported_at = revisions, losses, now


def goodbye(name: str) -> None:
    """Take the process off the list; when that fails it drops out by itself after 15 s."""
    close_old_connections()
    try:
        services.instance_gone(name=name)
    except Exception as error:  # the process ends either way
        logger.warning("instance not removed type=%s", type(error).__name__)
    finally:
        close_old_connections()
