"""An OpenAI-compatible endpoint without a model, so that what asks it is all there is to measure.

    python -m bench.peers.mock_endpoint 8123

Answers every chat completion at once with the number behind the prompt's last "answer ", streamed where
a stream is asked for. Written straight on asyncio: a web framework here would be measured too.
"""

import asyncio
import json
import re
import sys

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_WANTED = re.compile(rb"answer (\d+)")
_STREAMED = re.compile(rb'"stream": *true')
_USAGE = {"prompt_tokens": 24, "completion_tokens": 3, "total_tokens": 27}
_MODELS = {"object": "list", "data": [{"id": "mock", "object": "model", "created": 0, "owned_by": "mock"}]}


class Endpoint(asyncio.Protocol):
    """One connection; requests may come one after another."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (request := self._next()) is not None:
            head, body = request
            self._transport.write(_answer(head, body))

    def _next(self) -> tuple[bytes, bytes] | None:
        head, found, rest = self._data.partition(b"\r\n\r\n")
        if not found:
            return None
        told = _LENGTH.search(head)
        length = int(told[1]) if told else 0
        if len(rest) < length:
            return None
        self._data = rest[length:]
        return head, rest[:length]


def _answer(head: bytes, body: bytes) -> bytes:
    if b"/models" in head.split(b"\r\n", 1)[0]:
        return _whole(_MODELS)
    wanted = _WANTED.findall(body)
    text = wanted[-1].decode() if wanted else "nothing"
    if _STREAMED.search(body):
        return _stream(text)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return _whole(_head("chat.completion") | {"choices": [choice], "usage": _USAGE})


def _stream(text: str) -> bytes:
    def part(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _head("chat.completion.chunk") | {"choices": [choice]}

    half = len(text) // 2
    parts = [part({"role": "assistant", "content": ""}), part({"content": text[:half]})]
    parts += [part({"content": text[half:]}), part({}, "stop")]
    parts.append(_head("chat.completion.chunk") | {"choices": [], "usage": _USAGE})
    lines = b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in parts) + b"data: [DONE]\n\n"
    return _http(lines, b"text/event-stream")


def _head(kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-mock", "object": kind, "created": 1, "model": "mock"}


def _whole(value: object) -> bytes:
    return _http(json.dumps(value).encode(), b"application/json")


def _http(body: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
    return head + body


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Endpoint, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
