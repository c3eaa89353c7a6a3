"""The model under test or in training, as the engine serves it: one target, one client.

Owns what must hold for every request: prompts are tokenized once per task, the reply must come
from the model that was asked for, a transient failure is tried again, and an adapter that the
engine has lost is loaded again, once. An external endpoint is asked on its own terms.
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from artifacts import ArtifactStore
from domain.contracts import ChatMessage, EngineTarget, Sampling, TaskSpec
from workers.context import adapters_root
from workers.engine.client import ChatCompletion, Completion, EngineClient, EngineError
from workers.engine.retry import RetryPolicy, with_retries

log = logging.getLogger(__name__)
Reply = TypeVar("Reply")
Known = TypeVar("Known")

# Between the attempts of one request, each of which the client already tries for two seconds:
# together long enough for an engine that died to be back, on a busy machine too.
_PAUSES_S = (1.0, 4.0, 10.0, 20.0)
_UNKNOWN_MODEL, _BAD_REQUEST = 404, 400
# What later turns are rendered behind instead of the real conversation, whose ids must not change.
STAND_IN = (ChatMessage(role="user", content="x"), ChatMessage(role="assistant", content="x"))
_ADAPTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class ServedByAnother(RuntimeError):
    """The engine answered with another model than the one asked for: its tokens are worthless."""


class ServedPolicy:
    """``target`` on ``client``. ``store`` holds the adapter that may have to be loaded again.

    ``priority`` follows vLLM: smaller is served earlier.
    """

    def __init__(
        self,
        client: EngineClient,
        target: EngineTarget,
        *,
        store: ArtifactStore | None = None,
        priority: int = 0,
        pauses_s: Sequence[float] = _PAUSES_S,
    ) -> None:
        self.target = target
        self._client = client
        self._store = store
        self._priority = priority
        self._pauses_s = pauses_s
        self._terms = RetryPolicy.of(target)
        self._native_tools = target.native_tools
        self._known: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._reload: asyncio.Task[None] | None = None

    async def prompt_ids(self, task: TaskSpec) -> tuple[int, ...]:
        """The task's messages as token ids, rendered once however many samples are drawn."""
        return await self._once("prompt", task.id, lambda: self.tokenize(task.messages, task=task))

    async def stand_in_ids(self, task: TaskSpec) -> tuple[int, ...]:
        """``STAND_IN`` as token ids, rendered once for a task."""
        return await self._once(
            "stand-in",
            task.id,
            lambda: self.tokenize(STAND_IN, task=task, add_generation_prompt=False),
        )

    async def tokenize(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, add_generation_prompt: bool = True
    ) -> tuple[int, ...]:
        ids = await self._ask(
            lambda: self._client.tokenize(
                model=self.target.model,
                messages=[message.model_dump(exclude_none=True) for message in messages],
                tools=task.tools,
                add_generation_prompt=add_generation_prompt,
            )
        )
        return tuple(ids)

    async def knows_tool_role(self, task: TaskSpec) -> bool:
        """Whether the chat template renders messages of the role tool. Some refuse them, some drop them
        in silence: only ids that depend on the message's content are proof."""
        return await self._once("tool role", "", lambda: self._renders_tool_role(task))

    async def _renders_tool_role(self, task: TaskSpec) -> bool:
        try:
            one, other = [
                await self.tokenize([*STAND_IN, ChatMessage(role="tool", content=text)], task=task)
                for text in ("yes", "no")
            ]
        except EngineError as error:
            if error.retryable or error.status in (0, _UNKNOWN_MODEL):
                raise
            return False
        return one != other

    async def complete(
        self, prompt_ids: Sequence[int], *, max_tokens: int, sampling: Sampling, seed: int
    ) -> Completion:
        """Token ids in, token ids and their log-probabilities out."""
        reply = await self._ask(
            lambda: self._client.complete_tokens(
                model=self.target.model,
                prompt_ids=tuple(prompt_ids),
                max_tokens=max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=seed,
                priority=self._priority,
            )
        )
        if reply.model != self.target.model:
            raise ServedByAnother(f"asked for model {self.target.model!r}, answered by {reply.model!r}")
        return reply

    async def chat(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, sampling: Sampling, seed: int
    ) -> ChatCompletion:
        """Text in, text out: for endpoints that show no token ids. Such an endpoint may name the
        exact version behind an alias, so the name that it answers with is kept, not compared."""
        shown = [message.model_dump(exclude_none=True) for message in messages]
        native = self._native_tools and bool(task.tools)
        try:
            return await self._chat(shown, task=task, sampling=sampling, seed=seed, native=native)
        except EngineError as error:
            if not native or error.status != _BAD_REQUEST or "tool" not in error.message.casefold():
                raise
        # Perhaps it takes no calls (vLLM without a parser for them, a model without tools): then they are
        # text. Only an answer shows that; tools that it refuses either way are one task's fault.
        reply = await self._chat(shown, task=task, sampling=sampling, seed=seed, native=False)
        self._native_tools = False
        return reply

    async def _chat(
        self,
        shown: Sequence[Mapping[str, Any]],
        *,
        task: TaskSpec,
        sampling: Sampling,
        seed: int,
        native: bool,
    ) -> ChatCompletion:
        def send() -> Awaitable[ChatCompletion]:
            return self._client.chat(
                model=self.target.model,
                messages=[dict(message) for message in shown],
                tools=task.tools,
                native_tools=native,
                max_tokens=task.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=seed,
            )

        if self._terms is None:
            return await self._ask(send)
        reply, attempts = await with_retries(send, self._terms)
        return reply if attempts == 1 else replace(reply, attempts=attempts)

    async def retire(self, names: Sequence[str]) -> None:
        """Let the engine forget adapters that no unit needs any more. One that is gone already is
        as good as retired; its files can be made again from the artifact."""
        for name in names:
            try:
                await self._client.unload_adapter(name=name)
            except EngineError as error:
                log.info("adapter %s was not unloaded: %s", name, error)
            await asyncio.to_thread(shutil.rmtree, _folder(name), ignore_errors=True)

    async def _once(self, what: str, key: str, ask: Callable[[], Coroutine[Any, Any, Known]]) -> Known:
        """Asked once however many want to know; a failure is forgotten, so that the next one asks again."""
        place = (what, key)
        if place not in self._known:
            self._known[place] = asyncio.create_task(ask())
        asked = self._known[place]
        try:
            # Shielded: one sample's deadline must not take the answer from its siblings.
            found: Known = await asyncio.shield(asked)
        except (EngineError, ServedByAnother):
            if self._known.get(place) is asked:
                del self._known[place]
            raise
        return found

    async def _ask(self, request: Callable[[], Awaitable[Reply]]) -> Reply:
        try:
            return await self._retry(request)
        except EngineError as error:
            if error.status != _UNKNOWN_MODEL or not self.target.adapter_digest or self._store is None:
                raise
        # One reload for all requests in flight; whoever comes later waits for the same one.
        if self._reload is None:
            self._reload = asyncio.create_task(self._load_adapter())
        await asyncio.shield(self._reload)
        return await self._retry(request)

    async def _retry(self, request: Callable[[], Awaitable[Reply]]) -> Reply:
        for pause_s in self._pauses_s:
            try:
                return await request()
            except EngineError as error:
                if not error.retryable:
                    raise
            await asyncio.sleep(pause_s)
        return await request()

    async def _load_adapter(self) -> None:
        assert self._store is not None
        folder = _folder(self.target.model)
        path = await asyncio.to_thread(self._store.materialize, self.target.adapter_digest, folder)
        try:
            await self._client.load_adapter(name=self.target.model, path=str(path.resolve()))
        except EngineError:
            if self.target.model not in await self._client.models():  # else another worker was faster
                raise


def _folder(name: str) -> Path:
    """The folder of adapter ``name``; a name must not lead elsewhere."""
    if not _ADAPTER_NAME.fullmatch(name):
        raise EngineError(_UNKNOWN_MODEL, f"{name!r} is no adapter name", retryable=False)
    return adapters_root() / name
