"""Evidence for the verifier ``python_tests``: what a function returned for given arguments.

The answer runs in a sandbox of its own; arguments go in one call at a time, returned values come
back as typed JSON over a stream that is not stdout. Expected values never enter. Everything that
comes back may be forged: a frame must carry the nonce of the call just made, is bounded in size,
parsed strictly, and is only ever compared as data.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from domain import typed_json
from workers.sandbox.protocol import Backend, ExecResult, Limits, SandboxSpec, SandboxUnavailable

_FRAME_KEYS = {"nonce", "status", "value", "error"}
_DETAIL = 300


class ForgedFrame(ValueError):
    """A line that no honest agent writes."""


class _Frame(NamedTuple):
    status: str
    value: Any
    error: str


async def collect_python_calls(
    backend: Backend,
    *,
    code: str,
    entry_point: str,
    calls: Sequence[Mapping[str, Any]],
    limits: Limits,
) -> dict[str, Any]:
    """Call ``entry_point`` of ``code`` once per ``{"args": [typed JSON], "kwargs": {name: typed JSON}}``.

    Returns ``{"status", "calls": [{"status": "ok" | "error" | "missing", "value", "error"}], "detail"}``
    with one entry per call. ``status`` is an ``ExecResult`` status or ``"unavailable"``; it is
    ``"ok"`` only when every call was answered, so a program that leaves early is ``"nonzero"``.
    """
    talk = _Conversation(entry_point, calls)
    try:
        result = await backend.run(
            SandboxSpec(limits=limits),
            ["python", "agent.py"],
            files={**_agent_files(), "solution.py": code.encode("utf-8", "replace")},
            talk=talk,
        )
    except SandboxUnavailable as unavailable:
        return {"status": "unavailable", "calls": talk.answers(), "detail": str(unavailable)[:_DETAIL]}
    return {
        "status": "nonzero" if result.status == "ok" and not talk.complete else result.status,
        "calls": talk.answers(),
        "detail": (talk.trouble or _detail(result))[:_DETAIL],
    }


class _Conversation:
    """The host's side. It stops at the first frame that is not an honest answer."""

    def __init__(self, entry_point: str, calls: Sequence[Mapping[str, Any]]) -> None:
        self._entry_point = entry_point
        self._calls = calls
        self._frames: list[_Frame] = []
        self.trouble = ""

    @property
    def complete(self) -> bool:
        return len(self._frames) == len(self._calls)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            loaded = await _ask(reader, writer, {"entry_point": self._entry_point})
            if loaded.status == "error":
                self._frames = [loaded] * len(self._calls)
                return
            for call in self._calls:
                request = {"args": call.get("args", []), "kwargs": call.get("kwargs", {})}
                self._frames.append(await _ask(reader, writer, request))
        except ForgedFrame as forged:
            self.trouble = str(forged)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.trouble = "the program left before all calls were answered"

    def answers(self) -> list[dict[str, Any]]:
        given = [frame._asdict() for frame in self._frames]
        return given + [{"status": "missing", "value": None, "error": ""}] * (len(self._calls) - len(given))


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict[str, Any]) -> _Frame:
    nonce = secrets.token_hex(16)
    writer.write(json.dumps({**request, "nonce": nonce}, allow_nan=False).encode() + b"\n")
    await writer.drain()
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise ForgedFrame("a result was larger than any honest one") from None
    return _parse(line, nonce)


def _parse(line: bytes, nonce: str) -> _Frame:
    """One frame. Raises ``ForgedFrame`` for anything that is not exactly one."""
    try:
        frame = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ForgedFrame("a result was not strict JSON") from None
    if not isinstance(frame, dict) or set(frame) != _FRAME_KEYS:
        raise ForgedFrame("a result had other fields than those asked for")
    if not isinstance(frame["nonce"], str) or not secrets.compare_digest(
        frame["nonce"].encode("utf-8", "replace"), nonce.encode()
    ):
        raise ForgedFrame("a result did not belong to the call just made")
    if frame["status"] not in ("ok", "error") or not isinstance(frame["error"], str):
        raise ForgedFrame("a result had no known status")
    if frame["status"] == "error":
        return _Frame("error", None, frame["error"][:_DETAIL])
    try:
        typed_json.decode(frame["value"])
    except (ValueError, TypeError, RecursionError):
        raise ForgedFrame("a result was not typed JSON") from None
    return _Frame("ok", frame["value"], "")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _detail(result: ExecResult) -> str:
    if result.status == "ok":
        return ""
    last = result.stderr.text.strip().splitlines()[-1:]
    return result.detail or "".join(last)


@lru_cache(maxsize=1)
def _agent_files() -> dict[str, bytes]:
    return {
        "agent.py": Path(__file__).with_name("call_agent.py").read_bytes(),
        "typed_json.py": Path(typed_json.__file__).read_bytes(),
    }
