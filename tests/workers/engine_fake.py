"""An engine that says what a test tells it to, behind the real client's interface."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from workers.engine.client import ChatCompletion, Completion, EngineError

BOS, START, END = 1, 3, 2


class FakeEngine:
    """Tokens are the code points of the text, plus ``END``. ``answer(seed)`` is what it says.

    ``failures`` are raised before anything else, one a request.
    """

    def __init__(
        self, answer: Callable[[int], str] = lambda seed: "42", *, loaded: Sequence[str] = ("base",)
    ) -> None:
        self.answer = answer
        self.loaded = list(loaded)
        self.failures: list[EngineError] = []
        self.serves_as: str | None = None
        self.finish_reason = "stop"
        self.prompts: list[tuple[int, ...]] = []
        self.seeds: list[int] = []
        self.tokenized = 0
        self.loads: list[tuple[str, str]] = []
        self.delay_s = 0.0

    async def tokenize(
        self,
        *,
        model: str,
        messages: Sequence[Any],
        tools: Sequence[Any] = (),
        add_generation_prompt: bool = True,
    ) -> tuple[int, ...]:
        self._check(model)
        self.tokenized += 1
        ids = [BOS]
        for message in messages:
            ids += [START, *map(ord, f"{message['role']}\n{message['content']}"), END, ord("\n")]
        return tuple(ids + [START, *map(ord, "assistant\n")] * add_generation_prompt)

    async def complete_tokens(
        self,
        *,
        model: str,
        prompt_ids: Sequence[int],
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        seed: int,
        stop_token_ids: Sequence[int] = (),
        priority: int = 0,
    ) -> Completion:
        await asyncio.sleep(self.delay_s)
        self._check(model)
        self.prompts.append(tuple(prompt_ids))
        self.seeds.append(seed)
        text = self.answer(seed)
        tokens = (*map(ord, text), *((END,) if self.finish_reason == "stop" else ()))
        return Completion(
            token_ids=tokens,
            logprobs=tuple(-0.25 for _ in tokens),
            text=text,
            finish_reason=self.finish_reason,
            prompt_tokens=len(prompt_ids),
            completion_tokens=len(tokens),
            model=self.serves_as or model,
            latency_ms=5.0,
        )

    async def chat(
        self,
        *,
        model: str,
        messages: Sequence[Any],
        tools: Sequence[Any] = (),
        max_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stream: bool = True,
        native_tools: bool = False,
    ) -> ChatCompletion:
        self._check(model)
        return ChatCompletion(
            text=self.answer(seed or 0),
            tool_calls=(),
            finish_reason="stop",
            prompt_tokens=7,
            completion_tokens=2,
            model=self.serves_as or model,
            ttft_ms=3.0,
            latency_ms=9.0,
        )

    async def models(self) -> tuple[str, ...]:
        return tuple(self.loaded)

    async def load_adapter(self, *, name: str, path: str) -> None:
        if name in self.loaded:
            raise EngineError(400, f"{name} is already loaded", False)
        self.loads.append((name, path))
        self.loaded.append(name)

    async def unload_adapter(self, *, name: str) -> None:
        if name not in self.loaded:
            raise EngineError(404, f"{name} is not loaded", False)
        self.loaded.remove(name)

    def _check(self, model: str) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if model not in self.loaded:
            raise EngineError(404, f"The model `{model}` does not exist.", False)
