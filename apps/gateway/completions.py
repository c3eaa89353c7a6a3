"""One completion from request to log row: attempts before the first byte, one stream after it.

Nothing is sent to the caller until a target has said something of substance, so until then any
failure moves on to the next target. After it, a failure ends the stream with an error event and
without ``[DONE]``: another version's words are never spliced in.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import aiohttp

from apps.gateway.answers import AnswerReader, says_something
from apps.gateway.attempt import Attempt
from apps.gateway.endpoints import EndpointKeeper
from apps.gateway.errors import GatewayError, UpstreamError
from apps.gateway.http import Headers, Send, header_pairs, send_json
from apps.gateway.jobs import Job
from apps.gateway.records import Record
from apps.gateway.sse import DONE, encode_event
from apps.gateway.upstream import Json, Upstream, read_answer, read_events
from domain.routing import Target

T = TypeVar("T")

MAX_TARGETS = 5
# How long a server that could not be reached is asked last.
_SET_ASIDE_S = 2.0
_STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class Completions:
    """Answers jobs. One per process: it remembers which servers could not be reached a moment ago."""

    def __init__(self, upstream: Upstream, clock: Callable[[], float] = time.monotonic) -> None:
        self._upstream = upstream
        self._clock = clock
        self._aside_until: dict[str, float] = {}
        self.endpoints = EndpointKeeper()

    async def answer(self, job: Job, send: Send, *, keep_text: bool) -> None:
        """Send the answer; raises GatewayError while nothing has been sent. Fills the job's record."""
        started = self._clock()
        record = job.record
        record.streamed = job.stream
        reader: AnswerReader | None = None
        attempt = Attempt(self.endpoints, job)
        try:
            try:
                if job.stream:
                    target, (held, rest) = await self._first(job, attempt, self._open_stream)
                else:
                    target, whole = await self._first(job, attempt, self._whole)
            except UpstreamError as failure:
                job.upstream_status = failure.status
                error = failure.answer()
                record.status, record.error = error.status, failure.error
                record.failed = failure.error != "refused_by_model"
                raise error from failure
            except GatewayError as held_back:  # the endpoint's limits left no room in time
                record.status, record.error = held_back.status, held_back.code
                raise
            _note_served(record, target)
            reader = AnswerReader(record, name=target.name, wants_usage=job.wants_usage, choices=job.choices)
            record.status = 200
            if job.stream:
                record.ttft_ms = (self._clock() - started - job.waited_s) * 1000
                await self._pass_stream(job, attempt, reader, held, rest, send)
            else:
                await send_json(send, 200, reader.whole(whole), response_headers(job))
        except asyncio.CancelledError:
            record.status, record.error = 499, "client_disconnected"
            raise
        finally:
            attempt.leave(_tokens_used(record))
            record.latency_ms = (self._clock() - started - job.waited_s) * 1000
            if keep_text:
                record.content = {**job.asked(), **(reader.content() if reader else _NOTHING)}

    async def _first(
        self, job: Job, attempt: Attempt, call: Callable[[Job, Target, bytes], Awaitable[T]]
    ) -> tuple[Target, T]:
        """The first target that answers. Raises the last attempt's UpstreamError."""
        failure = UpstreamError("upstream_unreachable")
        unreachable: set[str] = set()
        for target in self._ordered(job.plan.targets):
            if target.base_url in unreachable:
                continue
            for again in (False, True):
                body = job.upstream_body(target)
                if target.external:
                    await attempt.enter(target, body)
                began = self._clock()
                try:
                    async with attempt.time():
                        result = await call(job, target, body)
                except UpstreamError as error:
                    failure = error
                    attempt.failed(target, error)
                    self._note_attempt(job.record, target, began, error)
                    if error.error == "upstream_unreachable":
                        unreachable.add(target.base_url)
                        self._aside_until[target.base_url] = self._clock() + _SET_ASIDE_S
                    if again or not error.same_target:
                        break
                except asyncio.CancelledError:
                    self._note_attempt(job.record, target, began, UpstreamError("client_disconnected"))
                    raise
                else:
                    self._note_attempt(job.record, target, began, None)
                    return target, result
            if not failure.next_target:
                break
        raise failure

    def _ordered(self, targets: tuple[Target, ...]) -> list[Target]:
        now = self._clock()
        return sorted(targets, key=lambda t: self._aside_until.get(t.base_url, 0.0) > now)[:MAX_TARGETS]

    def _note_attempt(
        self, record: Record, target: Target, began: float, error: UpstreamError | None
    ) -> None:
        record.attempts.append(
            {
                "deployment_id": target.deployment_id,
                "arm": target.arm,
                "edition_kind": target.edition_kind,
                "status": 200 if error is None else error.status,
                "error": "" if error is None else error.error,
                "latency_ms": round((self._clock() - began) * 1000, 2),
            }
        )
        blamed = error is not None and error.error not in ("client_disconnected", "refused_by_model")
        if blamed and record.assigned_arm and target.arm == record.assigned_arm:
            record.assigned_failed = True

    async def _open(self, job: Job, target: Target, body: bytes) -> aiohttp.ClientResponse:
        key = job.endpoint_keys.get(target.deployment_id, "")
        patience_s = job.terms.timeout_s if job.run and job.terms else None
        return await self._upstream.open(target, job.path, body, key, patience_s=patience_s)

    async def _whole(self, job: Job, target: Target, body: bytes) -> Json:
        return await read_answer(await self._open(job, target, body))

    async def _open_stream(
        self, job: Job, target: Target, body: bytes
    ) -> tuple[list[Json | None], AsyncGenerator[list[Json | None], None]]:
        """Parts up to the first that says something and those that came with it, and the rest."""
        response = await self._open(job, target, body)
        events = read_events(response)
        held: list[Json | None] = []
        try:
            async for together in events:
                held += together
                if any(payload is not None and says_something(payload) for payload in together):
                    return held, _closing(events, response)
                if together[-1] is None:
                    break
            raise UpstreamError("upstream_cut")
        except BaseException:
            response.close()
            raise

    async def _pass_stream(
        self,
        job: Job,
        attempt: Attempt,
        reader: AnswerReader,
        held: list[Json | None],
        rest: AsyncGenerator[list[Json | None], None],
        send: Send,
    ) -> None:
        """Send what was held, then what comes as it comes; what comes together goes on together."""
        headers = [*_STREAM_HEADERS, *response_headers(job)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body, done = reader.encoded(held), held[-1] is None
        try:
            async with attempt.time(), aclosing(rest):  # also when the caller goes away while we send
                if not done:
                    await _send_part(send, body)
                    body = b""
                async for together in rest:  # after the end, too: that gives the connection back
                    done = done or together[-1] is None
                    body += reader.encoded(together)
                    if not done:
                        await _send_part(send, body)
                        body = b""
            if not (done or reader.complete):
                raise UpstreamError("upstream_cut")
            last = DONE
        except UpstreamError as failure:
            record = job.record
            record.status, record.error, record.failed = 502, failure.error, True
            record.attempts[-1]["error"] = failure.error
            if record.assigned_arm and record.served_arm == record.assigned_arm:
                record.assigned_failed = True
            last = encode_event(failure.answer().payload())
        await send({"type": "http.response.body", "body": body + last})


async def _closing(
    events: AsyncGenerator[list[Json | None], None], response: Any
) -> AsyncGenerator[list[Json | None], None]:
    """``events``; however their reader leaves, the connection goes: back to the pool if it was read
    to its end, else closed, which cancels the work upstream."""
    try:
        async for together in events:
            yield together
    finally:
        response.release()


async def _send_part(send: Send, body: bytes) -> None:
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _note_served(record: Record, target: Target) -> None:
    record.version_id, record.version = target.version_id, target.version
    record.edition_kind, record.deployment_id = target.edition_kind, target.deployment_id
    record.served_arm = target.arm


def _tokens_used(record: Record) -> int | None:
    if record.prompt_tokens is None and record.completion_tokens is None:
        return None
    return (record.prompt_tokens or 0) + (record.completion_tokens or 0)


def response_headers(job: Job) -> Headers:
    """Which operation this is and what served it; on errors only what is known. Of an endpoint also what
    it answered and how long its limits held the request back, so that waits are not taken for latency."""
    record = job.record
    return header_pairs(
        {
            "x-flywheel-operation": record.operation,
            "x-flywheel-version": record.version,
            "x-flywheel-edition": record.edition_kind,
            "x-flywheel-arm": record.served_arm,
            "x-flywheel-revision": record.revision,
            "x-flywheel-upstream-status": (job.upstream_status or None) if job.terms else None,
            "x-flywheel-waited-ms": round(job.waited_s * 1000, 1) if job.terms else None,
        }
    )


_NOTHING: Json = {"answer": "", "tool_calls": []}
