"""HTTP servers in threads of this process, and a model behind OpenAI's chat API among them.

Nothing outside is asked, nobody needs a port that was free a moment ago, and what a test starts ends with it.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]
Calls = list[tuple[str, dict[str, Any]]]  # (tool, arguments) each


class Handler(BaseHTTPRequestHandler):
    """Reads JSON, answers whole, says nothing on the terminal."""

    def body(self) -> Any:
        """What was sent, None where there is nothing."""
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(data) if data else None

    def answer(self, status: int, said: Any, **headers: str) -> None:
        """``said`` as JSON, or bytes as they are; underscores in names of headers are hyphens."""
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(data))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # a caller that finds the line full tries again after a second only


class Served:
    """``handler`` at ``url``, on a port that the kernel chose, until ``stop``."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Refusal:
    """An error in OpenAI's shape."""

    status: int
    message: str = "no"
    code: Any = "x"


class ChatEndpoint(Served):
    """``says`` is given each request and returns the model's text, its calls of tools, or a refusal; it
    is streamed where a stream was asked for. ``asked`` keeps the requests."""

    def __init__(
        self, says: Callable[[Body], str | Calls | Refusal], *, tokens: tuple[int, int] = (3, 2)
    ) -> None:
        self.asked: list[Body] = []
        self.tokens = tokens  # of the prompt and of the answer, as it counts them
        endpoint = self

        class Chat(Handler):
            def do_POST(self) -> None:
                body = self.body()
                endpoint.asked.append(body)
                said = says(body)
                if isinstance(said, Refusal):
                    self.answer(said.status, {"error": {"message": said.message, "code": said.code}})
                elif body.get("stream"):
                    self.answer(200, endpoint._events(body, said), Content_Type="text/event-stream")
                else:
                    self.answer(200, endpoint._whole(body, said), Content_Type="application/json")

        super().__init__(Chat)

    def _whole(self, body: Body, said: str | Calls) -> Body:
        message = {"role": "assistant", **self._message(said)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"model": body["model"], "choices": [choice], "usage": self._usage()}

    def _events(self, body: Body, said: str | Calls) -> bytes:
        parts: list[Body] = [
            {"choices": [{"index": 0, "delta": self._message(said), "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": self._usage()},
        ]
        lines = [f"data: {json.dumps({'model': body['model'], **part})}\n\n" for part in parts]
        return "".join([*lines, "data: [DONE]\n\n"]).encode()

    def _message(self, said: str | Calls) -> Body:
        if isinstance(said, str):
            return {"content": said}
        turn = len(self.asked)
        return {
            "tool_calls": [
                {
                    "index": index,
                    "id": f"call-{turn}-{index}",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (name, arguments) in enumerate(said)
            ]
        }

    def _usage(self) -> Body:
        prompt, answer = self.tokens
        return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


class EchoEndpoint(ChatEndpoint):
    """Repeats the last message. ``statuses`` are answered first, one a request."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self._lock = threading.Lock()
        super().__init__(self._says)

    def _says(self, body: Body) -> str | Refusal:
        with self._lock:
            status = self.statuses.pop(0) if self.statuses else 200
        return str(body["messages"][-1]["content"]) if status == 200 else Refusal(status)
