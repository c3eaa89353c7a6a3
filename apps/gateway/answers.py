"""What passes from upstream to the caller: names put in, usage logged and stripped, text collected."""

from collections.abc import Sequence
from typing import Any

from apps.gateway.records import Record
from apps.gateway.sse import encode_event

Json = dict[str, Any]

# A longer answer is passed on whole and kept cut.
_KEPT_CHARACTERS = 1_000_000


class AnswerReader:
    """Reads one operation's answer as it passes, whole or in parts.

    ``wants_usage`` says whether the caller asked for usage in a stream; ``choices`` how many
    answers it asked for. The response's ``id`` becomes the operation, its ``model`` what served.
    """

    def __init__(self, record: Record, *, name: str, wants_usage: bool, choices: int) -> None:
        self._record = record
        self._name = name
        self._wants_usage = wants_usage
        self._choices = choices
        self._finished: set[int] = set()
        self._text: list[str] = []
        self._characters = 0
        self._calls: dict[int, Json] = {}

    @property
    def complete(self) -> bool:
        """Whether every choice said why it ended."""
        return len(self._finished) >= self._choices

    def whole(self, answer: Json) -> Json:
        """A response that was not streamed."""
        self._note_usage(answer.get("usage"))
        choice = answer["choices"][0]
        message = choice.get("message") or {}
        self._keep(message.get("content") if message else choice.get("text"))
        for index, call in enumerate(message.get("tool_calls") or ()):
            self._calls[index] = call
        return {**answer, "id": self._record.operation, "model": self._name}

    def part(self, payload: Json) -> Json | None:
        """One streamed part as the caller gets it, or None if it only carried usage nobody asked for."""
        usage = payload.get("usage")
        self._note_usage(usage)
        choices = payload.get("choices") or []
        for choice in choices:
            if choice.get("finish_reason"):
                self._finished.add(choice.get("index", 0))
            if choice.get("index", 0) == 0:
                self._note_delta(choice)
        if not self._wants_usage and "usage" in payload:
            if usage and not choices:
                return None
            payload = {key: value for key, value in payload.items() if key != "usage"}
        return {**payload, "id": self._record.operation, "model": self._name}

    def encoded(self, payloads: Sequence[Json | None]) -> bytes:
        """Streamed parts as the caller's events; None, the end, is not one of them."""
        parts = (self.part(payload) for payload in payloads if payload is not None)
        return b"".join(encode_event(part) for part in parts if part is not None)

    def content(self) -> Json:
        """The answer so far, as it is captured."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {"answer": "".join(self._text), "tool_calls": calls}

    def _note_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._record.prompt_tokens = _count(usage.get("prompt_tokens"))
            self._record.completion_tokens = _count(usage.get("completion_tokens"))

    def _note_delta(self, choice: Json) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            self._keep(choice.get("text"))
            return
        self._keep(delta.get("content"))
        for piece in delta.get("tool_calls") or ():
            if self._characters < _KEPT_CHARACTERS:  # a stream may never end
                self._characters += 1 + sum(map(len, _texts_of(piece)))
                _merge_call(self._calls.setdefault(piece.get("index", 0), {}), piece)

    def _keep(self, text: Any) -> None:
        if isinstance(text, str) and text and self._characters < _KEPT_CHARACTERS:
            self._text.append(text)
            self._characters += len(text)


def says_something(payload: Json) -> bool:
    """Whether a streamed part carries more than a role: text, a tool call, or the end."""
    for choice in payload.get("choices") or ():
        delta = choice.get("delta")
        if choice.get("finish_reason") or choice.get("text"):
            return True
        if isinstance(delta, dict) and any(value for key, value in delta.items() if key != "role"):
            return True
    return False


def _texts_of(piece: Json) -> list[str]:
    function = piece.get("function") or {}
    return [function.get(name) or "" for name in ("name", "arguments")]


def _merge_call(call: Json, piece: Json) -> None:
    """Streams cut a call's arguments into pieces; everything else comes whole."""
    part = piece.get("function") or {}
    function = call.setdefault("function", {"name": "", "arguments": ""})
    function["name"] += part.get("name") or ""
    function["arguments"] += part.get("arguments") or ""
    call.update({key: piece[key] for key in ("id", "type") if piece.get(key)})


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
