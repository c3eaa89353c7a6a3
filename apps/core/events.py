"""The event log: ``publish`` writes a row; a WebSocket message only says "there is more"."""

from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from apps.core.models import Event, Project


def group_name(project_id: int) -> str:
    return f"events-{project_id}"


def publish(*, project: Project, topic: str, kind: str, **data: Any) -> Event:
    """Append an event. ``data`` holds ids and numbers, never captured text."""
    event = Event.objects.create(project=project, topic=topic, kind=kind, data=data)
    if get_channel_layer() is not None:
        transaction.on_commit(lambda: _nudge(project.pk, event.pk))
    return event


def _nudge(project_id: int, event_id: int) -> None:
    layer = get_channel_layer()
    if layer is not None:
        async_to_sync(layer.group_send)(group_name(project_id), {"type": "events.more", "id": event_id})
