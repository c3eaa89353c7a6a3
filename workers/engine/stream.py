"""A streamed chat answer, put together part by part, and the moment its first token came."""

import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from artifacts.compact_json import read_json
from workers.engine.replies import WRONG_SHAPE, ChatCompletion, EngineError, Json, chat_completion

# An answer is text that a person could read; one that never ends must not fill the worker's memory.
ANSWER_LIMIT = 16 * 1024 * 1024

# What counts as a token: thinking and refusing are sampled too.
_SAID = ("content", "tool_calls", "reasoning_content", "reasoning", "refusal")


async def read_chat_stream(
    response: aiohttp.ClientResponse, *, model: str, started: float, refused: Any
) -> ChatCompletion:
    """The answer. ``started`` is the monotonic time that latency counts from, ``refused`` makes an
    EngineError of an error's body inside the stream."""
    said = _Said(model)
    ttft_ms: float | None = None
    async with response:
        async for event in events_of(response):
            try:
                if "error" in event:
                    raise refused(event)
                if said.add(event) and ttft_ms is None:
                    ttft_ms = (time.monotonic() - started) * 1000
            except WRONG_SHAPE as error:
                raise EngineError(200, f"stream of another shape ({type(error).__name__})", False) from error
    latency_ms = (time.monotonic() - started) * 1000
    if not said.finish_reason:
        raise EngineError(200, "stream ended before the answer did", True)
    try:
        return said.completion(ttft_ms, latency_ms)
    except WRONG_SHAPE as error:
        raise EngineError(200, f"stream of another shape ({type(error).__name__})", False) from error


class _Said:
    """What the parts of a stream said so far."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.finish_reason = ""
        self._texts: list[Any] = []
        self._calls: dict[int, Json] = {}
        self._usage: Any = None

    def add(self, event: Any) -> bool:
        """Take one part; True when the model said something in it."""
        self.model = event.get("model") or self.model
        self._usage = event.get("usage") or self._usage
        spoke = False
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            spoke = spoke or any(delta.get(name) for name in _SAID)
            if content := delta.get("content"):
                self._texts.append(content)
            for part in delta.get("tool_calls") or ():
                _merge_call(self._calls.setdefault(part.get("index", 0), {}), part)
        return spoke

    def completion(self, ttft_ms: float | None, latency_ms: float) -> ChatCompletion:
        return chat_completion(
            text="".join(self._texts),
            calls=[self._calls[index] for index in sorted(self._calls)],
            finish_reason=self.finish_reason,
            usage=self._usage,
            model=self.model,
            ttft_ms=ttft_ms,
            latency_ms=latency_ms,
        )


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    """The JSON payloads of a server-sent event stream, up to ``[DONE]``."""
    rest, size = b"", 0
    try:
        # By chunks: aiohttp's own lines end at 128 KiB, and an answer in one piece may be longer.
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > ANSWER_LIMIT:
                raise EngineError(200, f"an answer of more than {ANSWER_LIMIT >> 20} MiB", False)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if (data := _data_of(line)) == b"[DONE]":
                    return
                if data:
                    yield read_json(data, constants=True)
        if (data := _data_of(rest)) and data != b"[DONE]":
            yield read_json(data, constants=True)
    except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError) as error:
        raise EngineError(0, f"stream broke off ({error or type(error).__name__})", True) from error


def _data_of(line: bytes) -> bytes:
    line = line.strip()
    return line[5:].strip() if line.startswith(b"data:") else b""


def _merge_call(call: Json, part: Json) -> None:
    """Streams cut a tool call's arguments into pieces; everything else comes whole."""
    function, piece = call.setdefault("function", {"name": "", "arguments": ""}), part.get("function") or {}
    function["name"] += piece.get("name") or ""
    function["arguments"] += piece.get("arguments") or ""
    call.update({key: part[key] for key in ("id", "type") if part.get(key)})
