"""A server that plays external endpoints: judges, and a model that is judged. Nothing outside is asked.

``replies`` maps a model's name to a function of the request body; what it returns is the reply, a number
is an HTTP status. Point ``settings.BASE_URL`` at ``url``: our gateway is where workers reach endpoints.
"""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], str | int]


class Endpoints:
    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.asked: list[dict[str, Any]] = []
        mock = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                mock.asked.append(body)
                name = body["model"].removeprefix("endpoint:")
                said = mock.replies[name](body) if name in mock.replies else 404
                status, answer = (
                    (said, _refusal(said)) if isinstance(said, int) else (200, _answer(body, said))
                )
                data = (
                    _events(answer) if body.get("stream") and status == 200 else json.dumps(answer).encode()
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Work:
    """A worker in this process."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def progress(self, values: dict[str, Any]) -> None:
        pass

    def when_reported(self, action: Callable[[], object]) -> None:
        action()


def verdict(score: float, threshold: float = 0.5) -> str:
    return "Reasons.\n" + json.dumps({"score": score, "pass": score >= threshold})


def parts_of(body: dict[str, Any]) -> list[str]:
    """The quoted texts of a judge's request, in their order: question, answer, second answer."""
    blocks = re.split(r"\n\n(?!\|)", body["messages"][-1]["content"])
    quoted = [[line for line in block.split("\n") if line.startswith("| ")] for block in blocks]
    return ["\n".join(line[2:] for line in lines) for lines in quoted if lines]


def _answer(body: dict[str, Any], text: str) -> dict[str, Any]:
    return {
        "model": body["model"],
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }


def _events(answer: dict[str, Any]) -> bytes:
    """The same answer as one event of a stream."""
    (choice,) = answer["choices"]
    event = {**answer, "choices": [{"delta": choice["message"], "finish_reason": choice["finish_reason"]}]}
    return f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()


def _refusal(status: int) -> dict[str, Any]:
    return {"error": {"message": "the judge crashed", "code": status}}
