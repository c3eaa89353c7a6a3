"""A policy that looks for an answer before it asks for one: in the unit's journal, then in the cache.

Owns the key of an answer: a digest of everything that could change it. Errors are never kept.
"""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any

from domain.contracts import ChatMessage, EngineTarget, Sampling, TaskSpec
from workers.answer_journal import AnswerJournal
from workers.engine.replies import ChatCompletion, Completion
from workers.play import Policy
from workers.response_cache import ResponseCache

_FORMAT = 1


class RememberingPolicy:
    """``policy`` for sample ``sample`` of a case."""

    def __init__(
        self,
        policy: Policy,
        *,
        sample: int,
        journal: AnswerJournal | None = None,
        cache: ResponseCache | None = None,
    ) -> None:
        self._policy = policy
        self._sample = sample
        self._journal = journal
        self._cache = cache

    @property
    def target(self) -> EngineTarget:
        return self._policy.target

    async def prompt_ids(self, task: TaskSpec) -> tuple[int, ...]:
        return await self._policy.prompt_ids(task)

    async def tokenize(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, add_generation_prompt: bool = True
    ) -> tuple[int, ...]:
        return await self._policy.tokenize(messages, task=task, add_generation_prompt=add_generation_prompt)

    async def stand_in_ids(self, task: TaskSpec) -> tuple[int, ...]:
        return await self._policy.stand_in_ids(task)

    async def knows_tool_role(self, task: TaskSpec) -> bool:
        return await self._policy.knows_tool_role(task)

    async def complete(
        self, prompt_ids: Sequence[int], *, max_tokens: int, sampling: Sampling, seed: int
    ) -> Completion:
        asked = {"prompt_ids": list(prompt_ids)}
        key = answer_key(self.target, asked, sampling, max_tokens=max_tokens, seed=seed, sample=self._sample)
        known = _completion(self._find(key))
        if known is not None:
            return known
        reply = await self._policy.complete(prompt_ids, max_tokens=max_tokens, sampling=sampling, seed=seed)
        await self._keep(key, reply)
        return reply

    async def chat(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, sampling: Sampling, seed: int
    ) -> ChatCompletion:
        asked = {
            "messages": [message.model_dump(exclude_none=True) for message in messages],
            "tools": list(task.tools),
        }
        key = answer_key(
            self.target, asked, sampling, max_tokens=task.max_tokens, seed=seed, sample=self._sample
        )
        known = _chat(self._find(key))
        if known is not None:
            return known
        reply = await self._policy.chat(messages, task=task, sampling=sampling, seed=seed)
        await self._keep(key, reply)
        return reply

    def _find(self, key: str) -> Any:
        """A reply as it was kept. What the cache gives is marked as cached, what this unit's earlier
        attempts said is not: it was generated for this run."""
        if self._journal is not None and (kept := self._journal.find(key)) is not None:
            return kept
        if self._cache is not None and isinstance(kept := self._cache.get(key), dict):
            return kept | {"cached": True, "attempts": 1}
        return None

    async def _keep(self, key: str, reply: Completion | ChatCompletion) -> None:
        kept = {field.name: getattr(reply, field.name) for field in fields(reply)}
        if self._cache is not None:
            self._cache.put(key, kept)
        if self._journal is not None:
            await self._journal.keep(key, kept)


def answer_key(
    target: EngineTarget,
    asked: dict[str, Any],
    sampling: Sampling,
    *,
    max_tokens: int,
    seed: int,
    sample: int,
) -> str:
    """The digest of a request and of all that decides who answers it. ``asked`` is what the model
    sees: messages and tools, or token ids."""
    parts = {
        "format": _FORMAT,
        "identity": target.identity or target.base_url,
        "model": target.model,
        "adapter": target.adapter_digest,
        "protocol": target.protocol,
        "native_tools": target.native_tools,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": max_tokens,
        "seed": seed,
        "sample": sample,
        **asked,
    }
    return sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _completion(kept: Any) -> Completion | None:
    """The reply that was kept; None for none, or one of another shape, such as an older release's."""
    try:
        reply = Completion(**kept)
        if len(reply.token_ids) != len(reply.logprobs):
            return None
        return replace(reply, token_ids=tuple(reply.token_ids), logprobs=tuple(reply.logprobs))
    except TypeError:
        return None


def _chat(kept: Any) -> ChatCompletion | None:
    try:
        reply = ChatCompletion(**kept)
        return replace(reply, tool_calls=tuple(reply.tool_calls))
    except TypeError:
        return None
