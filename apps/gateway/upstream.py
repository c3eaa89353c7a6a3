"""Calls to what serves: one attempt each, its failure named, its answer checked before anyone sees it.

A 200 is believed only when its body is a completion: an error object inside it, a choice that
ended in an error, or JSON without choices fails the attempt like a 500 would.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from apps.gateway.errors import UpstreamError
from apps.gateway.resolver import CheckedResolver
from apps.gateway.sse import Event, SseSplitter
from apps.versions.addresses import AddressRefused, host_refused
from artifacts.compact_json import read_json
from domain.retrying import retry_after_s
from domain.routing import Target
from domain.secrets import find_secrets
from domain.spans import without_overlaps

Json = dict[str, Any]

CONNECT_TIMEOUT_S = 3.0
# Between two reads; a model that thinks this long without a byte is taken for hung.
READ_TIMEOUT_S = 120.0
_ANSWER_LIMIT = 64 * 1024 * 1024


class Upstream:
    """The HTTP client of one process. Create and close it inside the running loop."""

    def __init__(self, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._read_timeout_s = read_timeout_s
        self._ours = self._session(None)
        # Somebody typed these addresses: where their names lead is looked at before every connection.
        self._external = self._session(CheckedResolver())

    async def close(self) -> None:
        await self._ours.close()
        await self._external.close()

    async def open(
        self, target: Target, path: str, body: bytes, key: str, *, patience_s: float | None = None
    ) -> aiohttp.ClientResponse:
        """An answer of status 200 whose body is still to be read. Raises UpstreamError. ``patience_s``
        allows for longer silences than usual."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if target.external and _literal_refused(target.base_url):
            raise UpstreamError("endpoint_address", next_target=False)
        session = self._external if target.external else self._ours
        timeout = self._timeout(max(self._read_timeout_s, patience_s or 0.0))
        try:
            response = await session.post(
                target.base_url + path, data=body, headers=headers, allow_redirects=False, timeout=timeout
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _connection_failure(error) from error
        if response.status == 200:
            return response
        try:
            async with response:
                data = await response.content.read(64 * 1024)
                raise _refusal(response, data, external=target.external, key=key)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _connection_failure(error) from error

    def _session(self, resolver: CheckedResolver | None) -> aiohttp.ClientSession:
        # Idle connections are dropped before usual servers do (5 s), so that few are found dead.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3.0, resolver=resolver)
        return aiohttp.ClientSession(
            timeout=self._timeout(self._read_timeout_s),
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _timeout(self, read_s: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=read_s)


@lru_cache(maxsize=1024)
def _literal_refused(base_url: str) -> bool:
    """Whether the address itself, without a resolver, is one that may not be asked."""
    return host_refused(urlsplit(base_url).hostname or "")


async def read_answer(response: aiohttp.ClientResponse) -> Json:
    """The whole completion. Raises UpstreamError when it is none."""
    data = bytearray()
    try:
        async with response:
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > _ANSWER_LIMIT:
                    raise UpstreamError("upstream_malformed", status=200)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _connection_failure(error, cut=True) from error
    try:
        answer = read_json(data)
    except (ValueError, RecursionError):
        answer = None
    checked = checked_payload(answer)
    if not checked.get("choices"):
        raise UpstreamError("upstream_malformed", status=200)
    return checked


async def read_events(response: aiohttp.ClientResponse) -> AsyncGenerator[list[Json | None], None]:
    """The payloads of a stream in order, those that came together together, ``None`` for ``[DONE]``.
    Raises UpstreamError, after what came before the failure.

    Ending without ``[DONE]`` is for the caller to judge: it knows whether every choice finished.
    """
    splitter = SseSplitter()
    try:
        async for chunk in response.content.iter_any():
            together: list[Json | None] = []
            try:
                for event in splitter.feed(chunk):
                    if event.data.strip() == b"[DONE]":
                        together.append(None)
                        break
                    together.append(_read_event(event))
            except (UpstreamError, ValueError):
                if together:
                    yield together
                raise
            if together:
                yield together
            if together and together[-1] is None:
                return
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _connection_failure(error, cut=True) from error
    except ValueError as error:
        raise UpstreamError("upstream_malformed", status=200) from error


def _read_event(event: Event) -> Json:
    try:
        payload = read_json(event.data)
    except (ValueError, RecursionError):
        raise UpstreamError("upstream_malformed", status=200) from None
    checked = checked_payload(payload)
    if event.name == "error":
        raise UpstreamError("upstream_error", status=200)
    return checked


def checked_payload(payload: Any) -> Json:
    """``payload`` if it is a completion or a part of one; an UpstreamError for failures inside a 200."""
    if not isinstance(payload, dict):
        raise UpstreamError("upstream_malformed", status=200)
    if payload.get("error"):
        error = payload["error"]
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 200
        raise UpstreamError("upstream_busy" if status == 429 else "upstream_error", status=status)
    choices = payload.get("choices", [])
    if not isinstance(choices, list) or not all(_is_choice(choice) for choice in choices):
        raise UpstreamError("upstream_malformed", status=200)
    if any(choice.get("finish_reason") == "error" for choice in choices):
        raise UpstreamError("upstream_error", status=200)
    return payload


def _is_choice(choice: Any) -> bool:
    """Whether what we read of a choice has the protocol's shape; the rest passes as it came."""
    if not isinstance(choice, dict) or not isinstance(choice.get("index", 0), int):
        return False
    said = [choice.get(name) for name in ("message", "delta")]
    if not all(isinstance(part, dict | None) for part in said):
        return False
    return all(_is_calls(part.get("tool_calls")) for part in said if part)


def _is_calls(calls: Any) -> bool:
    if not isinstance(calls, list | None) or not all(isinstance(call, dict) for call in calls or ()):
        return False
    for call in calls or ():
        function = call.get("function")
        if not isinstance(call.get("index", 0), int) or not isinstance(function, dict | None):
            return False
        if not all(isinstance((function or {}).get(name), str | None) for name in ("name", "arguments")):
            return False
    return True


def _connection_failure(error: BaseException, *, cut: bool = False) -> UpstreamError:
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError | asyncio.TimeoutError):
        connecting = isinstance(error, aiohttp.ConnectionTimeoutError)
        # A server that took the work and does not answer would only be given it a second time.
        return UpstreamError(
            "upstream_unreachable" if connecting else "upstream_timeout", next_target=connecting
        )
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return UpstreamError("endpoint_address", next_target=False)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return UpstreamError("upstream_unreachable")
    # Gone before an answer began: most likely a kept-alive connection that the server had closed.
    return UpstreamError("upstream_cut", same_target=not cut)


def _refusal(
    response: aiohttp.ClientResponse, data: bytes, *, external: bool, key: str = ""
) -> UpstreamError:
    status = response.status
    if status in (401, 403):
        return UpstreamError("upstream_auth", status=status)
    if status == 404:
        return UpstreamError("model_not_loaded", status=status)
    told_s = retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC))
    told_s = None if told_s is None else min(told_s, 3600.0)
    if status == 429 and external and _code(data) == "insufficient_quota":
        return UpstreamError("upstream_quota", status=status)
    if status == 429:
        return UpstreamError("upstream_busy", status=status, retry_after_s=told_s)
    if status == 409 and external:  # a lock that another request holds; the next attempt may get it
        return UpstreamError("upstream_error", status=status, retry_after_s=told_s)
    if 400 <= status < 500 and status != 408:
        message, param = _told(data)
        return UpstreamError(
            "refused_by_model",
            status=status,
            next_target=False,
            message=_without_secrets(message, key),
            param=param and _without_secrets(param[:200], key),
        )
    return UpstreamError("upstream_error", status=status, retry_after_s=told_s)


def _code(data: bytes) -> str:
    """The code of an error body in OpenAI's shape, "" where there is none."""
    try:
        error = json.loads(data)["error"]
        return str(error.get("code") or error.get("type") or "")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""


def _without_secrets(text: str, key: str) -> str:
    """What a server says may quote the key that it was sent, whole or in part; callers may not see it."""
    text = text.replace(key, "…") if key else text
    for span in sorted(without_overlaps(find_secrets(text)), key=lambda found: -found.start):
        text = f"{text[: span.start]}…{text[span.end :]}"
    return text


def _told(data: bytes) -> tuple[str, str | None]:
    """Message and parameter of an error body in OpenAI's or vLLM's older shape."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return "", None
    error = body.get("error", body) if isinstance(body, dict) else {}
    if not isinstance(error, dict):
        return str(error)[:2000], None
    param = error.get("param")
    return str(error.get("message") or "")[:2000], str(param) if param else None
