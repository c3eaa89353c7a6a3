"""One question, one answer: the episode is over after the model's first turn."""

from collections.abc import Mapping
from typing import Any

from domain.contracts import ChatMessage, SandboxStep, TaskSpec
from workers.environments.protocol import Answer


class SingleTurn:
    """Shows the task's messages once."""

    def __init__(self) -> None:
        self._pending: tuple[ChatMessage, ...] = ()

    async def reset(self, task: TaskSpec) -> None:
        self._pending = task.messages

    def observe(self) -> tuple[ChatMessage, ...]:
        new, self._pending = self._pending, ()
        return new

    async def act(self, answer: Answer) -> bool:
        return True

    def sandbox_log(self) -> SandboxStep | None:
        return None

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def answer_text(self) -> str | None:
        return None

    async def close(self) -> None:
        return None
