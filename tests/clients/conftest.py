"""A server that answers as a test says: real sockets, no patched transport."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Server:
    """``answers[(method, path)]`` is a list of ``(status, body)``; the last one is repeated."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.seen: list[tuple[str, str, Any, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                sent = json.loads(body) if body else None
                path, _, query = self.path.partition("?")
                outer.seen.append((self.command, path, sent, query))
                queue = outer.answers.get((self.command, path), [(404, {"nothing": "here"})])
                status, answer = queue.pop(0) if len(queue) > 1 else queue[0]
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("x-flywheel-version", "1.1")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _answer

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def says(self, method: str, path: str, *answers: tuple[int, Any]) -> None:
        prefix = "" if path.startswith("/v1/") else "/api/v1"
        self.answers[(method, prefix + path)] = list(answers)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()
