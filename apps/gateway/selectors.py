"""Reads about the gateway: its processes, what they serve, and the spool."""

from typing import Any

from django.conf import settings

from apps.core.models import Alert, Project
from apps.gateway.models import GatewayInstance
from apps.gateway.spool import spool_state


def instances_alive() -> list[GatewayInstance]:
    return list(GatewayInstance.objects.alive())


def instances_behind(project: Project, number: int) -> list[str]:
    """Names of living gateway processes that do not serve revision ``number`` of the project yet.

    Empty means that every request from now on is routed by it, or that no gateway runs.
    """
    return [row.name for row in instances_alive() if int(row.revisions.get(str(project.pk), 0)) < number]


def gateway_state(project: Project) -> dict[str, Any]:
    """What ``GET /api/v1/gateway`` answers."""
    newest = project.routing_revisions.order_by("-number").values_list("number", flat=True).first()
    instances = instances_alive()
    return {
        "revision": newest,
        "instances": [
            {
                "name": row.name,
                "revision": row.revisions.get(str(project.pk)),
                "in_flight": row.in_flight,
                "rows_lost": row.rows_lost,
                "started_at": row.started_at,
                "seen_at": row.seen_at,
            }
            for row in instances
        ],
        "all_on_revision": None if newest is None or not instances else not instances_behind(project, newest),
        "spool": spool_state(settings.SPOOL_DIR),
        "losses": list(
            Alert.objects.filter(
                project=project, resolved_at=None, key__startswith="gateway.rows_lost:"
            ).values_list("detail", flat=True)
        ),
    }
