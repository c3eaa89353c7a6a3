"""What a gateway process tells the database about itself, from the snapshot's thread.

At once when its revisions or its losses change, else every five seconds: a release waits for the
former, and a database should not be written twice a second for nothing.
"""

import logging
import time
from typing import TYPE_CHECKING

from django.db import close_old_connections

from apps.gateway import services
from apps.gateway.snapshot import Snapshot

if TYPE_CHECKING:
    from apps.gateway.asgi import Gateway

logger = logging.getLogger(__name__)

EVERY_S = 5.0


class InstanceReporter:
    def __init__(self) -> None:
        self._revisions: dict[int, int] | None = None
        self._losses: dict[int, int] = {}
        self._reported_at = 0.0

    def __call__(self, gateway: "Gateway", snapshot: Snapshot) -> None:
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
