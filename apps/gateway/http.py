"""Just enough HTTP over ASGI: a request with its body counted while it is read, and answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from apps.gateway.errors import GatewayError
from artifacts.compact_json import compact_json, read_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_BODY_WITHIN_S = 60.0
_JSON = (b"content-type", b"application/json")


class ClientGone(Exception):
    """The caller closed the connection."""


class Request:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._receive = receive
        self._headers = {name.lower(): value for name, value in scope["headers"]}

    def header(self, name: str, limit: int = 200) -> str:
        """A header as text, "" when absent. Raises GatewayError when longer than ``limit`` characters."""
        value = self._headers.get(name.encode(), b"").decode("utf-8", "replace").strip()
        if len(value) > limit:
            raise GatewayError(
                400,
                f"The header {name} is longer than {limit} characters.",
                code="header_too_long",
                param=name,
            )
        return value

    def bearer(self) -> str:
        scheme, _, token = self.header("authorization", 4096).partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    async def body(self, limit: int) -> bytes:
        """The body; 413 as soon as more than ``limit`` bytes came, whatever Content-Length says."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise GatewayError(413, f"The body is larger than {limit:,} bytes.", code="request_too_large")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def json_body(self, limit: int) -> Any:
        try:
            async with asyncio.timeout(_BODY_WITHIN_S):
                data = await self.body(limit)
        except TimeoutError:
            raise GatewayError(408, "The body did not come in time.", code="request_timeout") from None
        try:
            return read_json(data)
        except (ValueError, RecursionError):  # wrong bytes are a ValueError too
            raise GatewayError(400, "The body is not valid JSON.", code="invalid_json") from None

    async def gone(self) -> None:
        """Return when the caller closed the connection; to be awaited after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            await asyncio.sleep(0)


async def send_body(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (_JSON,)
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, payload: Any, headers: Headers | None = None) -> None:
    await send_body(send, status, compact_json(payload), [_JSON, *(headers or ())])


async def send_error(send: Send, error: GatewayError, headers: Headers | None = None) -> None:
    await send_body(send, error.status, error.body(), [_JSON, *error.headers(), *(headers or ())])


def header_pairs(values: dict[str, Any]) -> Headers:
    """Headers from names and values; None and "" are left out."""
    return [
        (name.encode(), str(value).encode("latin-1", "replace"))
        for name, value in values.items()
        if value not in (None, "")
    ]
