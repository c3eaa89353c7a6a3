"""The one client of an engine: vLLM's HTTP API, or the pocket server's subset of it.

A request is tried again only when nothing of an answer was read yet, and only for a lost
connection or a status that says "later" (429, 502, 503). The end-of-turn token is part of
``token_ids`` when the model sampled it, as vLLM returns it; text never shows it.

Somebody else's endpoint, reached through our gateway, is asked once a call (``once``): how often
and when again is for ``retry`` to say. There every status that may pass is worth a retry.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp

from artifacts.compact_json import compact_json
from domain.retrying import may_pass, retry_after_s
from workers.engine.replies import (
    ChatCompletion,
    Completion,
    EngineError,
    Json,
    error_parts,
    read_chat,
    read_completion,
)
from workers.engine.stream import read_chat_stream

__all__ = ["ChatCompletion", "Completion", "EngineClient", "EngineError"]

RETRY_STATUSES = frozenset({429, 502, 503})
_RETRY_DELAYS_S = (0.1, 0.4, 1.6)
_JSON = {"Content-Type": "application/json"}

# What our gateway says about an endpoint's answer: its own status, and how long the request waited for
# the endpoint's limits before it was sent.
_UPSTREAM_STATUS = "x-flywheel-upstream-status"
_WAITED_MS = "x-flywheel-waited-ms"
# Errors that stay, whatever their status: a refused key, a spent quota, an endpoint taken away.
_STAYS = frozenset(
    {"upstream_auth", "upstream_quota", "insufficient_quota", "invalid_run_token", "endpoint_address"}
)


class _Sent(NamedTuple):
    """``started`` is the monotonic time at which the answered attempt was sent to whom it was for."""

    response: aiohttp.ClientResponse
    started: float


class EngineClient:
    """``async with EngineClient(url) as engine``; ``base_url`` with or without ``/v1``.

    ``timeout_s`` bounds one attempt, from its start to the end of its answer; 0 leaves that to the caller.
    """

    def __init__(
        self, base_url: str, token: str = "", timeout_s: float = 60.0, *, once: bool = False
    ) -> None:
        self._root = base_url.rstrip("/").removesuffix("/v1").rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._once = once
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=self._timeout, connector=connector
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def complete_tokens(
        self,
        *,
        model: str,
        prompt_ids: Sequence[int],
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        seed: int,
        stop_token_ids: Sequence[int] = (),
        priority: int = 0,
    ) -> Completion:
        """Token ids in, token ids and logprobs out; smaller ``priority`` is served first.

        Raises EngineError; an answer whose tokens and logprobs differ in number is one too.
        """
        body: Json = {
            "model": model,
            "prompt": list(prompt_ids),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_p": top_p,
            "seed": seed,
            "stop_token_ids": list(stop_token_ids),
            "priority": priority,
            "logprobs": 0,
            "return_token_ids": True,
        }
        answer, latency_ms = await self._json("POST", "/v1/completions", body)
        return read_completion(answer, latency_ms=latency_ms)

    async def chat(
        self,
        *,
        model: str,
        messages: Sequence[Json],
        tools: Sequence[Json] = (),
        max_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stream: bool = True,
        native_tools: bool = False,
    ) -> ChatCompletion:
        """One assistant turn. Tools are shown to the model, and a call is left in ``text`` as it was
        written, so that a verifier judges what the model said; with ``native_tools`` the model may call
        them, and its calls are ``tool_calls``. Raises EngineError."""
        body: Json = {
            "model": model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_p": top_p,
        }
        if tools:
            body |= {"tools": list(tools), "tool_choice": "auto" if native_tools else "none"}
        if seed is not None:
            body["seed"] = seed
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
            sent = await self._send("POST", "/v1/chat/completions", body)
            return await read_chat_stream(
                sent.response, model=model, started=sent.started, refused=self._refusal_inside
            )
        answer, latency_ms = await self._json("POST", "/v1/chat/completions", body)
        return read_chat(answer, model=model, latency_ms=latency_ms)

    async def tokenize(
        self,
        *,
        model: str,
        messages: Sequence[Json],
        tools: Sequence[Json] = (),
        add_generation_prompt: bool = True,
    ) -> tuple[int, ...]:
        """Ids of the prompt that ``chat`` would send for these messages."""
        body: Json = {
            "model": model,
            "messages": list(messages),
            "add_generation_prompt": add_generation_prompt,
        }
        if tools:
            body["tools"] = list(tools)
        answer, _ = await self._json("POST", "/tokenize", body)
        return tuple(answer["tokens"])

    async def models(self) -> tuple[str, ...]:
        """Names that ``model`` may take: the base model and the loaded adapters."""
        answer, _ = await self._json("GET", "/v1/models")
        return tuple(card["id"] for card in answer["data"])

    async def load_adapter(self, *, name: str, path: str) -> None:
        """``path`` is a folder on the engine's machine. A name is never loaded twice (400)."""
        await self._text("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": path})

    async def unload_adapter(self, *, name: str) -> None:
        await self._text("POST", "/v1/unload_lora_adapter", {"lora_name": name})

    async def health(self) -> bool:
        """Whether the engine answers now; one try, at most two seconds."""
        try:
            async with self._open().get(
                f"{self._root}/health", timeout=aiohttp.ClientTimeout(total=2.0)
            ) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _json(self, method: str, path: str, body: Json | None = None) -> tuple[Json, float]:
        """The answer, and the milliseconds that it took to come whole."""
        text, latency_ms = await self._text(method, path, body)
        try:
            answer: Json = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EngineError(200, f"{path} did not answer with JSON", False) from error
        return answer, latency_ms

    async def _text(self, method: str, path: str, body: Json | None = None) -> tuple[str, float]:
        sent = await self._send(method, path, body)
        try:
            async with sent.response as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EngineError(0, f"answer broke off ({error or type(error).__name__})", True) from error
        return text, (time.monotonic() - sent.started) * 1000

    async def _send(self, method: str, path: str, body: Json | None) -> _Sent:
        """An open response of status 200. Unless it asks once, it waits 0.1, 0.4 and 1.6 s between its
        four tries."""
        for delay_s in (*(() if self._once else _RETRY_DELAYS_S), None):
            started = time.monotonic()
            try:
                response = await self._open().request(
                    method, self._root + path, data=_encoded(body), headers=_JSON
                )
            except TimeoutError as error:  # the time that the caller allowed is used up
                raise EngineError(0, "no answer in time", True) from error
            except aiohttp.ClientError as error:
                if delay_s is None:
                    reached = not isinstance(error, aiohttp.ClientConnectorError)
                    raise EngineError(0, str(error) or type(error).__name__, True, reached=reached) from error
            else:
                if response.status == 200:
                    return _Sent(response, started + _milliseconds(response.headers.get(_WAITED_MS)) / 1000)
                async with response:
                    refusal = self._refusal(response, await response.text(errors="replace"))
                if delay_s is None or not refusal.retryable:
                    raise refusal
            await asyncio.sleep(delay_s)
        raise AssertionError("unreachable: the last try returns or raises")

    def _refusal(self, response: aiohttp.ClientResponse, body: str) -> EngineError:
        """An EngineError from the answer's status, headers and body."""
        message, code = error_parts(body)
        told = response.headers.get(_UPSTREAM_STATUS, "")
        status = int(told) if told.isascii() and told.isdigit() else response.status
        return EngineError(
            status,
            message,
            self._may_pass(status, code),
            code=code,
            retry_after_s=retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC)),
        )

    def _refusal_inside(self, event: Json) -> EngineError:
        """An EngineError from an error inside a stream, whose status is 200."""
        message, code = error_parts(event)
        given = event["error"].get("code")
        status = given if isinstance(given, int) else 500
        return EngineError(status, message, self._may_pass(status, code), code=code)

    def _may_pass(self, status: int, code: str) -> bool:
        if code in _STAYS:
            return False
        return may_pass(status) if self._once else status in RETRY_STATUSES

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("EngineClient is used outside of its 'async with' block")
        return self._session


def _encoded(body: Json | None) -> bytes | None:
    return None if body is None else compact_json(body)


def _milliseconds(value: str | None) -> float:
    """What our gateway says; 0 from a server that is none."""
    try:
        return min(max(float(value or 0), 0.0), 3_600_000.0)
    except ValueError:
        return 0.0
