"""A model of someone else's that repeats what it was asked, or fails loudly."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.endpoints import Handler, Served


class _Echo(Handler):
    """Model ``echo`` answers with the last message; ``broken`` puts it into an error of status 500;
    ``cut`` says half of it as a stream and breaks off."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.body()
        said = str(body["messages"][-1]["content"])
        if body["model"] == "broken":
            self.answer(
                500, {"error": {"message": f"cannot handle: {said}", "type": "server_error", "code": 500}}
            )
        elif body["model"] == "cut":
            self._stream([said[: len(said) // 2]], finished=False)
        elif body.get("stream"):
            self._stream([said[at : at + 7] for at in range(0, len(said), 7)], finished=True)
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            self.answer(200, {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE})

    def do_GET(self) -> None:
        self.answer(200, {"object": "list", "data": [{"id": name} for name in ("echo", "broken", "cut")]})

    def _stream(self, parts: list[str], *, finished: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for part in parts:
            self._event({"index": 0, "delta": {"role": "assistant", "content": part}, "finish_reason": None})
        if finished:
            self._event({"index": 0, "delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, choice: dict[str, Any]) -> None:
        payload = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
        self.wfile.write(b"data: " + json.dumps(payload).encode() + b"\n\n")


_HEAD = {"id": "x", "created": 0, "model": "echo"}
_USAGE = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}


@contextmanager
def echoing_model() -> Iterator[str]:
    """Its base URL."""
    with Served(_Echo) as served:
        yield served.url
