"""Text in, token ids out, and back: tokenizer and chat template of the served model."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from workers.engine.sampling import Drawn


class Text:
    """Wraps the tokenizer of a model folder."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = PreTrainedTokenizerFast.from_pretrained(path)
        self.name_of = lru_cache(maxsize=None)(self._name_of)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text without special tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def chat(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None, generation: bool
    ) -> list[int]:
        """Ids of a conversation through the chat template, which brings its own ``<|bos|>``."""
        text = self._tokenizer.apply_chat_template(
            list(messages), tools=list(tools or []) or None, tokenize=False, add_generation_prompt=generation
        )
        return self.encode(str(text))

    def _name_of(self, token: int) -> str:
        return str(self._tokenizer.decode([token]))


class Unrolling:
    """The text of a growing list of tokens, cut where it is safe to show.

    A character whose bytes are not all there yet is held back, and so is an ending that may
    become a stop text.
    """

    def __init__(self, text: Text, stop_texts: Sequence[str]) -> None:
        self._text, self._stops = text, stop_texts
        self._ids: list[int] = []
        self._shown = 0

    def add(self, drawn: Sequence[Drawn], *, finished: bool) -> str:
        """What may be shown now and was not shown before."""
        self._ids += [choice.token for choice in drawn]
        full = cut(self._text.decode(self._ids), self._stops)
        safe = full if finished else full[: len(full) - self._held_back(full)]
        piece, self._shown = safe[self._shown :], max(self._shown, len(safe))
        return piece

    def _held_back(self, full: str) -> int:
        if full.endswith("\ufffd"):
            return len(full) - len(full.rstrip("\ufffd"))
        longest = max((len(stop) for stop in self._stops), default=0)
        for size in range(min(longest - 1, len(full)), 0, -1):
            if any(stop.startswith(full[-size:]) for stop in self._stops):
                return size
        return 0


def cut(text: str, stop_texts: Sequence[str]) -> str:
    """``text`` up to the first stop text in it."""
    ends = [text.index(stop) for stop in stop_texts if stop in text]
    return text[: min(ends)] if ends else text
