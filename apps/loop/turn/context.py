"""What a phase works with: the turn's row and state, an API client, and a way to say what happens."""

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
from django.conf import settings

from apps.core.crypto import decrypt_bytes
from apps.loop.models import DemoTurn
from clients.flywheel import Client


class TurnFailed(Exception):
    """The turn cannot go on; the text says why, as a sentence."""


class Api(Protocol):
    """The part of the client that phases use."""

    def get(self, path: str, **query: Any) -> Any: ...

    def post(self, path: str, body: Any = None) -> Any: ...

    def chat(
        self, messages: list[dict[str, Any]], *, headers: dict[str, str] | None = None, **parameters: Any
    ) -> httpx.Response: ...

    def close(self) -> None: ...


class Turn:
    """A turn in the hands of one worker.

    ``state`` and what was said are stored by the machine after every chunk, together or not at all:
    a chunk that a killed worker did not finish leaves no trace here and is done again.
    """

    def __init__(self, row: DemoTurn, api: Api | None = None) -> None:
        self.row = row
        self.seed: int = row.seed
        self.state: dict[str, Any] = row.state
        self.api: Api = api or Client(settings.BASE_URL, decrypt_bytes(bytes(row.api_key)).decode())
        self.lines: list[str] = []
        # Set by the machine: keeps the lease while a chunk takes long; raises when it was lost.
        self.hold: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.api.close()

    def say(self, text: str) -> None:
        """A line of the log, for a person."""
        self.lines.append(text[:300])

    def say_once(self, key: str, text: str) -> None:
        """Say it unless a line under ``key`` was said before."""
        said = self.state.setdefault("said", [])
        if key not in said:
            said.append(key)
            self.say(text)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def rows(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Every row of a list that pages back by id."""
        before = 0
        while batch := self.api.get(path, before=before, limit=500, **query):
            self.hold()
            yield from batch
            before = batch[-1]["id"]

    def made_once(
        self, key: str, path: str, body: dict[str, Any], same: Callable[[dict[str, Any]], bool]
    ) -> int:
        """Id of what ``body`` makes at ``path``; made by the first call and found by every later one.

        ``same`` recognises it in the list at ``path``: a worker may have died right after making it.
        """
        if key not in self.state:
            found = next((row for row in self.api.get(path, limit=200) if same(row)), None)
            self.state[key] = (found or self.api.post(path, body))["id"]
        return int(self.state[key])
