"""A server that answers as a test says: real sockets, no patched transport."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.endpoints import Handler, Served


class Server(Served):
    """``answers[(method, path)]`` is a list of ``(status, body)``; the last one is repeated."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.seen: list[tuple[str, str, Any, str]] = []
        outer = self

        class Scripted(Handler):
            def _next(self) -> None:
                path, _, query = self.path.partition("?")
                outer.seen.append((self.command, path, self.body(), query))
                queue = outer.answers.get((self.command, path), [(404, {"nothing": "here"})])
                status, said = queue.pop(0) if len(queue) > 1 else queue[0]
                self.answer(status, said, X_Flywheel_Version="1.1")

            do_GET = do_POST = do_DELETE = _next

        super().__init__(Scripted)

    def says(self, method: str, path: str, *answers: tuple[int, Any]) -> None:
        prefix = "" if path.startswith("/v1/") else "/api/v1"
        self.answers[(method, prefix + path)] = list(answers)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        yield started
