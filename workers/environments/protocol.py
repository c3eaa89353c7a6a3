"""What an episode asks of its environment. One instance serves one episode.

The episode calls ``reset`` once, then ``observe`` and ``act`` in turn until ``act`` says that
the episode is over, then ``evidence`` once, and ``close`` always. ``observe`` returns only the
messages that are new since the last call, so that the token ids held so far are never rendered
again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from domain.contracts import ChatMessage, SandboxStep, TaskSpec


@dataclass(frozen=True)
class Answer:
    """What the model said in one turn. ``tool_calls`` are in OpenAI format."""

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str = ""


class EnvironmentBroken(RuntimeError):
    """The host's side failed (no sandbox, a sandbox that died before the model's code ran): the
    episode is an error, never a failure of the model."""


class Environment(Protocol):
    """A world with turns. Raises ``EnvironmentBroken`` where the host's side fails."""

    async def reset(self, task: TaskSpec) -> None: ...

    def observe(self) -> tuple[ChatMessage, ...]:
        """What is new; to an answer with ``tool_calls`` one message of the role tool for each, with its
        id: an endpoint refuses a history in which a call is unanswered."""
        ...

    async def act(self, answer: Answer) -> bool:
        """Take the model's turn; True when the episode is over."""
        ...

    def sandbox_log(self) -> SandboxStep | None:
        """What the last ``act`` did; it is kept in the trajectory's step."""
        ...

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        """What the verifier may look at, by name (``workspace``, ``end_state``, ``trace``)."""
        ...

    def answer_text(self) -> str | None:
        """What the verifier reads as the answer; None: the model's last turn."""
        ...

    async def close(self) -> None:
        """Give back what the episode held. Harmless twice."""
        ...
