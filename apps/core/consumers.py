"""The one WebSocket: tells a page that its project has more events, after a permission check.

Without a channel layer it tails the event table once a second; with one it waits to be told,
and still looks every 15 s, because a message may be lost and a row may not.
"""

import asyncio
import contextlib
import re
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from apps.core.events import group_name
from apps.core.models import Event, Membership

_BATCH = 200
_ID = re.compile("[0-9]{1,18}")  # of 64 bits


class EventsConsumer(AsyncJsonWebsocketConsumer):
    """``/ws/events/?project=<slug>&after=<event id>``: sends ``{"after": id, "events": [...]}``."""

    project_id: int
    after: int
    _tail: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        project_id = await self._project_for(query.get("project", [""])[0])
        if project_id is None:
            await self.close(code=4403)
            return
        self.project_id = project_id
        after = query.get("after", [""])[0]
        self.after = int(after) if _ID.fullmatch(after) else await self._last_id()
        await self.accept()
        self._more = asyncio.Event()
        if self.channel_layer is not None:
            await self.channel_layer.group_add(group_name(project_id), self.channel_name)
        self._tail = asyncio.create_task(self._follow())

    async def disconnect(self, code: int) -> None:
        if self._tail is not None:
            self._tail.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tail
        if self.channel_layer is not None and hasattr(self, "project_id"):
            await self.channel_layer.group_discard(group_name(self.project_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A page has nothing to say here; whatever comes is not even parsed."""

    async def events_more(self, message: dict[str, Any]) -> None:
        self._more.set()

    async def _follow(self) -> None:
        pause = 1.0 if self.channel_layer is None else 15.0
        while True:
            events = await self._next_events()
            if events is None:
                await self.close(code=4403)  # membership was taken away
                return
            if events:
                self.after = events[-1]["id"]
                await self.send_json({"after": self.after, "events": events})
                if len(events) == _BATCH:
                    continue
            self._more.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._more.wait(), pause)

    @database_sync_to_async
    def _project_for(self, slug: str) -> int | None:
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            return None
        return (
            Membership.objects.filter(user=user, project__slug=slug)
            .values_list("project_id", flat=True)
            .first()
        )

    @database_sync_to_async
    def _last_id(self) -> int:
        return (
            Event.objects.filter(project_id=self.project_id)
            .order_by("-pk")
            .values_list("pk", flat=True)
            .first()
            or 0
        )

    @database_sync_to_async
    def _next_events(self) -> list[dict[str, Any]] | None:
        if not Membership.objects.filter(user=self.scope["user"], project_id=self.project_id).exists():
            return None
        rows = Event.objects.filter(project_id=self.project_id, pk__gt=self.after).order_by("pk")[:_BATCH]
        return [{"id": row.pk, "topic": row.topic, "kind": row.kind, "data": row.data} for row in rows]
