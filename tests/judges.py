"""A server that plays external endpoints: judges, and a model that is judged. Nothing outside is asked.

``replies`` maps a model's name to a function of the request body; what it returns is the reply, a number
is an HTTP status. Point ``settings.BASE_URL`` at ``url``: our gateway is where workers reach endpoints.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.endpoints import ChatEndpoint, Refusal

Reply = Callable[[dict[str, Any]], str | int]


class Endpoints(ChatEndpoint):
    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        super().__init__(self._says, tokens=(100, 10))

    def _says(self, body: dict[str, Any]) -> str | Refusal:
        name = body["model"].removeprefix("endpoint:")
        said = self.replies[name](body) if name in self.replies else 404
        return Refusal(said, "the judge crashed", said) if isinstance(said, int) else said


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
