"""A scripted upstream, a routing snapshot in memory, and the gateway as an ASGI application."""

import asyncio
import contextlib
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from aiohttp import web

from apps.core.crypto import key_digest
from apps.gateway.asgi import Gateway
from apps.gateway.endpoints import EndpointTerms
from apps.gateway.limits import Limits
from apps.gateway.snapshot import KeyInfo, Snapshot
from apps.gateway.spool import Spool
from tests.waiting import GUARD_S

KEY = "fw_test-key"
READ_KEY = "fw_read-only-key"
GENEROUS = Limits(100_000, 100_000_000, 1000)

Reply = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class FakeUpstream:
    """Answers each model by its script, one reply a call, the last one for ever."""

    def __init__(self) -> None:
        self.script: dict[str, deque[Reply]] = defaultdict(lambda: deque([answers("Hello.")]))
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.cancelled = 0
        self.url = ""
        self._runner: web.AppRunner | None = None

    def plays(self, model: str, *replies: Reply) -> None:
        self.script[model] = deque(replies)

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_post("/v1/completions", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(body)
        self.headers.append(dict(request.headers))
        replies = self.script[body["model"]]
        reply = replies.popleft() if len(replies) > 1 else replies[0]
        try:
            return await reply(request, body)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def part(text: str = "", *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"content": text} if text else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "up-1", "object": "chat.completion.chunk", "model": "engine", "choices": [choice], **more}


ROLE = {
    "id": "up-1",
    "model": "engine",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
USAGE_PART = {"id": "up-1", "model": "engine", "choices": [], "usage": USAGE}


def sse(*payloads: Any) -> bytes:
    return b"".join(
        b"data: "
        + (p.encode() if isinstance(p, str) else json.dumps(p, ensure_ascii=False).encode())
        + b"\n\n"
        for p in payloads
    )


def answers(text: str) -> Reply:
    """A whole answer, or the same as a well-formed stream if a stream is asked for."""

    async def reply(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body.get("stream"):
            last = [USAGE_PART] if (body.get("stream_options") or {}).get("include_usage") else []
            data = sse(ROLE, part(text), part(finish="stop"), *last, "[DONE]")
            return await streams(data)(request, body)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "text": text, "finish_reason": "stop"}
        return web.json_response({"id": "up-1", "model": "engine", "choices": [choice], "usage": USAGE})

    return reply


def streams(*chunks: bytes, cut: bool = False, pause_s: float = 0.0) -> Reply:
    """Write ``chunks`` as they are; ``cut`` tears the connection down afterwards."""

    async def reply(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(pause_s)
        if cut:
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    return reply


def status(code: int, body: Any = None, **headers: str) -> Reply:
    async def reply(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        payload = {"error": {"message": f"status {code}", "code": code}} if body is None else body
        return web.json_response(payload, status=code, headers=headers)

    return reply


def drops() -> Reply:
    """Close the connection without a byte."""

    async def reply(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return reply


def hangs(*chunks: bytes) -> Reply:
    """Write ``chunks``, then nothing more."""

    async def reply(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if chunks:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for chunk in chunks:
                await response.write(chunk)
        await asyncio.sleep(2 * GUARD_S)
        raise AssertionError("nobody hung up")

    return reply


def arm(version_id: int, version: str, model: str) -> dict[str, Any]:
    return {"version_id": version_id, "version": version, "model": model, "adapter_digest": ""}


def routing(standard: Iterable[Any], high_speed: Iterable[Any] = (), **changes: Any) -> dict[str, Any]:
    """A revision with version 1.0 (engine model ``base``) in service; deployments by URL or dict."""

    def deployments(start: int, given: Iterable[Any]) -> list[dict[str, Any]]:
        return [
            {"deployment_id": start + i, "base_url": d}
            if isinstance(d, str)
            else {"deployment_id": start + i, **d}
            for i, d in enumerate(given)
        ]

    return {
        "revision": 4,
        "project": "billing",
        "project_id": 1,
        "arms": {"control": arm(10, "1.0", "base"), "canary": None},
        "release": None,
        "editions": {"standard": deployments(1, standard), "high_speed": deployments(51, high_speed)},
        "externals": {},
        "task_types": {"interactive": "high_speed", "quality": "standard", "batch": "standard"},
        "default_edition": "standard",
        "capture": {"failures": True, "success_rate": 0.0},
        "failure_signals": ["error"],
        **changes,
    }


def canary(weight: float, *, segment: int = 0) -> dict[str, Any]:
    """Changes for ``routing``: version 1.1 (engine model ``adapter``) as canary."""
    release = {"id": 77, "number": 1, "salt": "pepper", "weight": weight, "segment": segment}
    return {
        "arms": {"control": arm(10, "1.0", "base"), "canary": arm(11, "1.1", "adapter")},
        "release": release,
    }


@dataclass
class World:
    """A gateway over one upstream, its spool, and what is in force."""

    gateway: Gateway
    upstream: FakeUpstream
    spool: Spool
    routing: dict[int, dict[str, Any]] = field(default_factory=dict)
    limits: Limits = GENEROUS
    endpoint_keys: dict[int, str] = field(default_factory=dict)
    endpoint_terms: dict[int, EndpointTerms] = field(default_factory=dict)
    feedback: list[dict[str, Any]] = field(default_factory=list)
    project_id: int = 1

    def snapshot(self) -> Snapshot:
        keys = {
            key_digest(KEY): KeyInfo(1, self.project_id, frozenset({"gateway"}), self.limits),
            key_digest(READ_KEY): KeyInfo(2, self.project_id, frozenset({"read"}), self.limits),
        }
        return Snapshot(dict(self.routing), keys, dict(self.endpoint_keys), dict(self.endpoint_terms))

    async def routes(self, *standard: Any, high_speed: Iterable[Any] = (), **changes: Any) -> None:
        """Put a revision in force; without arguments the upstream serves both editions."""
        urls = standard or (self.upstream.url,)
        self.routing[self.project_id] = routing(urls, high_speed or urls, **changes)
        await self.gateway.start()
        await self.gateway.snapshots.refresh()

    def client(self, key: str = KEY) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.gateway),  # type: ignore[arg-type]
            base_url="http://gateway",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=GUARD_S,
        )

    async def chat(
        self, *, headers: dict[str, str] | None = None, key: str = KEY, **body: Any
    ) -> httpx.Response:
        payload = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], **body}
        async with self.client(key) as client:
            return await client.post(
                "/v1/chat/completions", content=json.dumps(payload), headers=headers or {}
            )

    def rows(self) -> list[dict[str, Any]]:
        """Everything logged so far, as the spool's files hold it."""
        self.spool.flush(rotate=True)
        lines = [line for path in sorted(self.spool.folder.glob("*.jsonl")) for line in path.open()]
        return [json.loads(line) for line in lines]

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[httpx.AsyncClient]:
        """The gateway behind a real HTTP server on a free port."""
        config = uvicorn.Config(self.gateway, port=0, log_level="error", timeout_graceful_shutdown=1)  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        headers = {"Authorization": f"Bearer {KEY}"}
        try:
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=GUARD_S
            ) as client:
                yield client
        finally:
            server.should_exit = True
            await task


def events_of(response: httpx.Response) -> list[Any]:
    """The payloads of a streamed answer; ``[DONE]`` as that string."""
    lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def text_of(events: Iterable[Any]) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for event in events
        if isinstance(event, dict)
        for choice in event.get("choices", ())
    )
