"""The gateway: a raw ASGI application for ``/v1/…``. No SQL on the request path.

What a request needs lies in memory (``snapshot``); what it leaves goes to a local spool
(``spool``). Django is not entered.
"""

import asyncio
import atexit
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

from django.conf import settings
from django.utils import timezone

from apps.feedback.captures import cluster_key
from apps.gateway.callers import Caller, identify, unit_of
from apps.gateway.completions import Completions, response_headers
from apps.gateway.errors import GatewayError, routing_errors
from apps.gateway.http import (
    ClientGone,
    Receive,
    Request,
    Scope,
    Send,
    header_pairs,
    send_body,
    send_error,
    send_json,
)
from apps.gateway.jobs import Job, check_body
from apps.gateway.limits import LimitKeeper
from apps.gateway.metrics import Metrics
from apps.gateway.records import Record, capture_reason, new_operation
from apps.gateway.signals import feedback_items, feedback_take
from apps.gateway.snapshot import Snapshot, SnapshotHolder, SnapshotLoader
from apps.gateway.spool import Spool
from apps.gateway.upstream import READ_TIMEOUT_S, Upstream
from domain import routing as routing_rules

T = TypeVar("T")

logger = logging.getLogger(__name__)

_METHODS = {
    "/v1/chat/completions": "POST",
    "/v1/completions": "POST",
    "/v1/models": "GET",
    "/v1/feedback": "POST",
    "/v1/gateway/metrics": "GET",
}

_PERHAPS_KNOWN_NEXT = {"model_not_found", "task_type_unknown", "no_deployment", "not_ready"}

_BROKEN = GatewayError(500, "Something broke on our side.", code="gateway_error")


class Gateway:
    """One per process. Starts at the lifespan event, or at the first request where there is none."""

    def __init__(
        self,
        *,
        load: Callable[[], Snapshot],
        spool: Spool,
        max_body_bytes: int,
        report: Callable[["Gateway", Snapshot], None] = lambda gateway, snapshot: None,
        say_goodbye: Callable[[str], None] = lambda name: None,
        take_feedback: Callable[..., list[dict[str, str]]] = feedback_take,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.name = f"{os.uname().nodename}-{os.getpid()}-{time.time_ns() // 1_000_000}"[-120:]
        self.started_at: datetime = timezone.now()
        self.spool = spool
        self.limits = LimitKeeper()
        self.keys_used: set[int] = set()  # since the last report; a key that is in use must look so
        self.metrics = Metrics()
        self._max_body_bytes = max_body_bytes
        self._load = load
        self._report = report
        self._say_goodbye = say_goodbye
        self._take_feedback = take_feedback
        self._read_timeout_s = read_timeout_s
        self._starting: asyncio.Lock | None = None
        self._running = False

    @classmethod
    def from_settings(cls) -> Self:
        from apps.gateway.reporting import InstanceReporter, goodbye

        return cls(
            load=SnapshotLoader().load,
            spool=Spool(settings.SPOOL_DIR),
            max_body_bytes=settings.GATEWAY_MAX_BODY_BYTES,
            report=InstanceReporter(),
            say_goodbye=goodbye,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if not self._running:
            await self.start()
        request = Request(scope, receive)
        try:
            await self._dispatch(request, send)
        except GatewayError as error:
            self.metrics.refused[error.status] += 1
            await send_error(send, error)
        except ClientGone:
            self.metrics.refused[499] += 1
        except Exception as error:  # ours; the caller gets the one shape all the same
            logger.error("request broke path=%s type=%s", request.path[:200], type(error).__name__)
            await send_error(send, _BROKEN)

    async def start(self) -> None:
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._running:
                return
            self.snapshots = SnapshotHolder(self._load, partial(self._report, self))
            self._upstream = Upstream(self._read_timeout_s)
            self._completions = Completions(self._upstream)
            self._feedback_threads = ThreadPoolExecutor(4, thread_name_prefix="gateway-feedback")
            self.spool.start()
            atexit.register(self.spool.stop)
            await self.snapshots.start()
            self._running = True

    async def stop(self) -> None:
        """Close upstream connections, write what the spool holds, take the process off the list."""
        if not self._running:
            return
        self._running, self._starting = False, None
        await self.snapshots.stop()
        await self._upstream.close()
        await asyncio.to_thread(self._feedback_threads.shutdown)
        await asyncio.to_thread(self.spool.stop)
        atexit.unregister(self.spool.stop)
        await asyncio.to_thread(self._say_goodbye, self.name)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _dispatch(self, request: Request, send: Send) -> None:
        method = _METHODS.get(request.path)
        if method is None:
            raise GatewayError(404, "There is nothing at this address.", code="not_found")
        if request.method != method:
            raise GatewayError(405, f"Use {method} here.", code="method_not_allowed")
        caller = await identify(request, self.snapshots)
        if caller.key_id is not None:
            self.keys_used.add(caller.key_id)
        if request.path == "/v1/models":
            await self._models(caller, send)
        elif request.path == "/v1/feedback":
            await self._feedback(request, caller, send)
        elif request.path == "/v1/gateway/metrics":
            await self._metrics(caller, send)
        else:
            await self._complete(request, caller, send)

    async def _complete(self, request: Request, caller: Caller, send: Send) -> None:
        caller.require("gateway")
        self.limits.enter(caller.identity, caller.limits)
        record: Record | None = None
        try:
            body = check_body(await request.json_body(self._max_body_bytes), request.path)
            job = await self._once_known(partial(self._job, request, caller, body))
            record = job.record
            await self._answer_while_wanted(request, job, send, keep_text=caller.run is None)
        finally:
            used = (record.prompt_tokens or 0) + (record.completion_tokens or 0) if record else 0
            self.limits.leave(caller.identity, used)

    async def _once_known(self, find: Callable[[], T]) -> T:
        """What ``find`` finds, in the next snapshot if not in this one: a run starts, and a caller asks,
        within milliseconds of an endpoint's being registered."""
        try:
            return find()
        except GatewayError as error:
            if error.code not in _PERHAPS_KNOWN_NEXT:
                raise
        await self.snapshots.next_load()
        return find()

    def _job(self, request: Request, caller: Caller, body: dict[str, Any]) -> Job:
        routing = self._routing(caller)
        unit = unit_of(request, body, caller)
        model = str(body.get("model") or "auto")
        task_type = request.header("x-flywheel-task-type", 40)
        with routing_errors():
            if caller.run is not None:
                target = routing_rules.endpoint_target(routing, deployment_id=caller.run.deployment_id)
                plan = routing_rules.Plan((target,), task_type=task_type)
            else:
                plan = routing_rules.plan_route(routing, model=model, task_type=task_type, unit=unit)
        record = Record(
            project_id=caller.project_id,
            operation=new_operation(),
            unit=unit,
            revision=routing["revision"],
            key_id=caller.key_id,
            # Ids are written in clear, so what may be personal is hashed before it reaches a disk.
            external_id=cluster_key(request.header("x-flywheel-external-id", 120)),
            family=cluster_key(request.header("x-flywheel-family", 100)),
            source=cluster_key(request.header("x-flywheel-source", 120)),
            task_type=plan.task_type,
            release_id=plan.release_id,
            segment=plan.segment,
            assigned_arm=plan.assigned_arm,
        )
        snapshot, first = self.snapshots.current, plan.targets[0]
        return Job(
            request.path,
            body,
            plan,
            record,
            snapshot.endpoint_keys,
            terms=snapshot.endpoint_terms.get(first.deployment_id) if first.external else None,
            gateways=snapshot.gateways,
            run=caller.run is not None,
        )

    async def _answer_while_wanted(self, request: Request, job: Job, send: Send, *, keep_text: bool) -> None:
        """Answer the job; when the caller goes away, cancel the work and with it the upstream call."""
        record = job.record
        work = asyncio.ensure_future(self._completions.answer(job, send, keep_text=keep_text))
        gone = asyncio.ensure_future(request.gone())
        gone.add_done_callback(lambda _: work.cancel())
        try:
            await work
        except asyncio.CancelledError:
            if not gone.done():  # the server is shutting down
                raise
        except GatewayError as error:
            await send_error(send, error, response_headers(job))
        except Exception as error:  # ours, not the upstream's: the caller still gets the one shape
            logger.error("operation=%s broke type=%s", record.operation, type(error).__name__)
            record.error, record.failed = "gateway_error", True
            if record.status == 0:
                record.status = 500
                await send_error(send, _BROKEN, response_headers(job))
        finally:
            work.cancel()
            gone.cancel()
            self._log(record)

    def _log(self, record: Record) -> None:
        """Once per operation, however it ended."""
        if record.status == 0:  # the server is shutting down
            record.status, record.error = 499, "client_disconnected"
        routing = self.snapshots.current.routing.get(record.project_id, {})
        record.capture = capture_reason(record, routing.get("capture", {}))
        if not record.capture:
            record.content = None
        self.metrics.note(record)
        self.spool.append(record.row())

    def _routing(self, caller: Caller) -> routing_rules.Json:
        routing = self.snapshots.current.routing.get(caller.project_id)
        if routing is None:
            raise GatewayError(
                503,
                "No model version is in service in this project yet.",
                code="not_ready",
                retry_after_s=5.0,
            )
        return routing

    async def _models(self, caller: Caller, send: Send) -> None:
        caller.require("gateway", "read")
        routing, names = await self._once_known(partial(self._names, caller))
        cards = [{"id": name, "object": "model", "created": 0, "owned_by": "flywheel"} for name in names]
        headers = header_pairs({"x-flywheel-revision": routing["revision"]})
        await send_json(send, 200, {"object": "list", "data": cards}, headers)

    def _names(self, caller: Caller) -> tuple[routing_rules.Json, list[str]]:
        routing = self._routing(caller)
        with routing_errors():
            if caller.run is None:
                return routing, routing_rules.model_names(routing)
            target = routing_rules.endpoint_target(routing, deployment_id=caller.run.deployment_id)
        return routing, [target.name]

    async def _feedback(self, request: Request, caller: Caller, send: Send) -> None:
        caller.require("gateway", "capture")
        if caller.key_id is None:
            raise GatewayError(403, "A run token cannot give feedback.", code="missing_scope")
        items = feedback_items(await request.json_body(self._max_body_bytes))
        take = partial(self._take_feedback, key_id=caller.key_id, items=items)
        results = await asyncio.get_running_loop().run_in_executor(self._feedback_threads, take)
        refused = bool(results) and all(result["status"] == "invalid" for result in results)
        if refused:
            raise GatewayError(400, results[0].get("message") or "Invalid feedback.", code="invalid_feedback")
        await send_json(send, 202, {"object": "list", "data": results})

    async def _metrics(self, caller: Caller, send: Send) -> None:
        caller.require("read")
        text = self.metrics.text(
            caller.project_id,
            in_flight=self.limits.in_flight(),
            lost=self.spool.lost_by_project.get(caller.project_id, 0),
            waiting=self.spool.waiting(),
        )
        await send_body(send, 200, text.encode(), [(b"content-type", b"text/plain; version=0.0.4")])
