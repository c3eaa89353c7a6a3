"""Strict frames over a sandbox's channel: one line of JSON out, one line back.

What comes back may be forged. A frame must carry the nonce of the request just made, is bounded in
size by the stream's limit, and is parsed without leniency.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any

from domain import typed_json


class Forged(ValueError):
    """A line that no honest agent writes."""


class Gone(ConnectionError):
    """The program has ended, or has hung up."""


class Line:
    """The host's end of one conversation. Use it from one task at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._nonce = ""

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send ``request`` under a fresh nonce; what came back, without the nonce. Raises ``Forged``,
        ``Gone``."""
        self._nonce = secrets.token_hex(16)
        return await self.go_on({**request, "nonce": self._nonce})

    async def go_on(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send something more within the request last made. Raises as ``ask``."""
        try:
            self._writer.write(json.dumps(message, allow_nan=False).encode() + b"\n")
            await self._writer.drain()
            line = await self._reader.readuntil(b"\n")
        except (ConnectionError, asyncio.IncompleteReadError, RuntimeError) as error:
            raise Gone("the program left before it had answered") from error
        except asyncio.LimitOverrunError:
            raise Forged("an answer was larger than any honest one") from None
        return self._parse(line)

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            frame = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise Forged("an answer was not strict JSON") from None
        if not isinstance(frame, dict) or not isinstance(frame.get("nonce"), str):
            raise Forged("an answer had no nonce")
        given = str(frame.pop("nonce")).encode("utf-8", "replace")
        if not secrets.compare_digest(given, self._nonce.encode()):
            raise Forged("an answer did not belong to the request just made")
        return frame


def typed(value: Any) -> Any:
    """``value``, once it is sure to be typed JSON. Raises ``Forged``."""
    try:
        typed_json.decode(value)
    except (ValueError, TypeError, RecursionError):
        raise Forged("a value was not typed JSON") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
