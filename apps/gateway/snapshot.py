"""What the data path knows without asking: routing of every project, keys, endpoints' keys and terms.

One background task reloads it twice a second through a thread of its own. When the database
cannot be reached, the last good snapshot stays in force.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.db.models import Max

from apps.core.crypto import InvalidToken, decrypt_bytes
from apps.core.models import ApiKey
from apps.gateway.endpoints import EndpointTerms
from apps.gateway.limits import Limits
from apps.gateway.models import GatewayInstance, KeyLimit
from apps.versions.models import Deployment, RoutingRevision

logger = logging.getLogger(__name__)

REFRESH_EVERY_S = 0.5
NEXT_WITHIN_S = 1.5


@dataclass(frozen=True)
class KeyInfo:
    id: int
    project_id: int
    scopes: frozenset[str]
    limits: Limits


@dataclass(frozen=True)
class Snapshot:
    """``routing`` holds each project's newest revision as it is stored (``domain.routing``)."""

    routing: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    keys: Mapping[str, KeyInfo] = field(default_factory=dict)  # by digest
    endpoint_keys: Mapping[int, str] = field(default_factory=dict)  # by deployment id
    endpoint_terms: Mapping[int, EndpointTerms] = field(default_factory=dict)  # by deployment id
    gateways: int = 1  # processes that keep these terms together

    def revisions(self) -> dict[int, int]:
        return {project_id: int(routing["revision"]) for project_id, routing in self.routing.items()}


def default_limits() -> Limits:
    return Limits(
        requests_per_minute=settings.GATEWAY_REQUESTS_PER_MINUTE,
        tokens_per_minute=settings.GATEWAY_TOKENS_PER_MINUTE,
        in_flight=settings.GATEWAY_IN_FLIGHT,
    )


class SnapshotLoader:
    """Reads a snapshot from the database; unchanged revisions and ciphertexts are not read again."""

    def __init__(self) -> None:
        self._routing: dict[int, tuple[int, Mapping[str, Any]]] = {}  # project id -> (row id, snapshot)
        self._endpoint_keys: dict[int, tuple[bytes, str]] = {}

    def load(self) -> Snapshot:
        """Four to six small queries. Raises what the database raises.

        Routing first: an endpoint that it names must not lack its key and its limits.
        """
        routing = self._load_routing()
        rows = list(Deployment.objects.filter(kind=Deployment.Kind.EXTERNAL, retired_at=None))
        return Snapshot(
            routing,
            _load_keys(),
            self._load_endpoint_keys(rows),
            {row.pk: _terms(row) for row in rows},
            max(1, GatewayInstance.objects.alive().count()),
        )

    def _load_routing(self) -> dict[int, Mapping[str, Any]]:
        newest = dict(RoutingRevision.objects.order_by().values_list("project_id").annotate(newest=Max("pk")))
        changed = [pk for project_id, pk in newest.items() if self._routing.get(project_id, (0,))[0] != pk]
        if changed:
            for row in RoutingRevision.objects.filter(pk__in=changed):
                self._routing[row.project_id] = (row.pk, {**row.snapshot, "revision": row.number})
        self._routing = {key: value for key, value in self._routing.items() if key in newest}
        return {project_id: routing for project_id, (_, routing) in self._routing.items()}

    def _load_endpoint_keys(self, rows: Sequence[Deployment]) -> dict[int, str]:
        held: dict[int, tuple[bytes, str]] = {}
        for row in rows:
            if row.api_key is None:
                continue
            pk, token = row.pk, bytes(row.api_key)
            known = self._endpoint_keys.get(pk)
            if known is not None and known[0] == token:
                held[pk] = known
                continue
            try:
                held[pk] = (token, decrypt_bytes(token).decode())
            except InvalidToken:
                logger.error("endpoint key cannot be decrypted deployment=%s", pk)
        self._endpoint_keys = held
        return {pk: key for pk, (_, key) in held.items()}


def _terms(row: Deployment) -> EndpointTerms:
    return EndpointTerms(
        row.max_concurrency, row.requests_per_minute, row.tokens_per_minute, row.timeout_s, row.deadline_s
    )


def _load_keys() -> dict[str, KeyInfo]:
    usual = default_limits()
    special = {
        row.key_id: Limits(row.requests_per_minute, row.tokens_per_minute, row.in_flight)
        for row in KeyLimit.objects.all()
    }
    rows = ApiKey.objects.active().values_list("digest", "pk", "project_id", "scopes")
    return {
        digest: KeyInfo(pk, project_id, frozenset(scopes), special.get(pk, usual))
        for digest, pk, project_id, scopes in rows
    }


class SnapshotHolder:
    """``current`` is the newest good snapshot. ``heard`` is called in the thread after each load."""

    def __init__(
        self,
        load: Callable[[], Snapshot],
        heard: Callable[[Snapshot], None] = lambda snapshot: None,
        every_s: float = REFRESH_EVERY_S,
    ) -> None:
        self.current = Snapshot()
        self.loaded_at: float | None = None
        self._load = load
        self._heard = heard
        self._every_s = every_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gateway-snapshot")
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self._loaded = asyncio.Event()  # replaced at every load: waiters of one load wake together
        self._begun = self._ended = 0  # loads

    async def next_load(self, within_s: float = NEXT_WITHIN_S) -> None:
        """Return after a load that begins after this call, or after ``within_s`` seconds. One that is
        under way may have read before what is waited for was written."""
        wanted = self._begun + 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._ended < wanted:
                    await self._loaded.wait()

    async def start(self) -> None:
        """Load once and keep loading. Until a load works, nothing is served."""
        await self.refresh()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await asyncio.to_thread(self._thread.shutdown)

    async def refresh(self) -> None:
        loop = asyncio.get_running_loop()
        self._begun += 1
        begun = self._begun
        try:
            self.current = await loop.run_in_executor(self._thread, self._load_in_thread)
            self.loaded_at = time.monotonic()
            self._failing = False
        except Exception as error:  # keep serving from the last good one
            if not self._failing:
                logger.error("snapshot not refreshed type=%s pid=%s", type(error).__name__, os.getpid())
            self._failing = True
            return
        finally:
            self._ended = begun
            self._loaded.set()
            self._loaded = asyncio.Event()
        await loop.run_in_executor(self._thread, self._tell, self.current)

    def age_s(self) -> float | None:
        return None if self.loaded_at is None else time.monotonic() - self.loaded_at

    def _load_in_thread(self) -> Snapshot:
        close_old_connections()
        try:
            return self._load()
        finally:
            close_old_connections()

    def _tell(self, snapshot: Snapshot) -> None:
        close_old_connections()
        try:
            self._heard(snapshot)
        except Exception as error:  # a report that cannot be written is written next time
            logger.error("instance not reported type=%s", type(error).__name__)
        finally:
            close_old_connections()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.refresh()
