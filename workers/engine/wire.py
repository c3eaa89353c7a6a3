"""Requests and answers of the pocket server as they stand on the wire: vLLM's fields, checked.

What the server cannot do and what would change an answer is refused by name, never ignored.
"""

import secrets
import time
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from workers.engine.sampling import Drawn, Params

Json = dict[str, Any]
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_k": (None, 0, -1),
    "min_p": (None, 0, 0.0),
    "presence_penalty": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "repetition_penalty": (None, 1, 1.0),
    "logit_bias": (None, {}),
    "response_format": (None, {"type": "text"}),
    "structured_outputs": (None,),
    "allowed_token_ids": (None,),
    "min_tokens": (None, 0),
    "ignore_eos": (None, False),
    "echo": (None, False),
    "suffix": (None, ""),
    "best_of": (None, 1),
    "use_beam_search": (None, False),
}


class BadRequest(ValueError):
    """An HTTP error in OpenAI's shape: 400 unless ``status`` says otherwise."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind or {404: "NotFoundError", 400: "BadRequestError"}.get(status, "InternalServerError")
        self.param = param


class StreamOptions(BaseModel):
    include_usage: bool = False


class GenerationBody(BaseModel):
    """What completions and chat have in common."""

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    temperature: float = Field(default=1.0, ge=0.0, le=100.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    seed: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)
    n: int = Field(default=1, ge=1, le=128)
    stop: str | list[str] = Field(default_factory=list)
    stop_token_ids: list[int] = Field(default_factory=list)
    stream: bool = False
    stream_options: StreamOptions | None = None
    priority: int = 0
    return_token_ids: bool = False

    @field_validator(
        "temperature", "top_p", "n", "stop", "stop_token_ids", "stream", "return_token_ids", mode="before"
    )
    @classmethod
    def _null_is_default(cls, value: Any, info: Any) -> Any:
        if value is not None:
            return value
        return cls.model_fields[info.field_name].get_default(call_default_factory=True)

    def refuse_unsupported(self) -> None:
        for name, neutral in _NEUTRAL.items():
            value = (self.model_extra or {}).get(name)
            if value not in neutral:
                raise BadRequest(f"{name} is not supported by the pocket engine", param=name)

    def params(self, *, max_tokens: int, top: int, index: int) -> Params:
        """Sampling of the ``index``-th of ``n`` choices; each draws from a seed of its own."""
        seed = secrets.randbits(63) if self.seed is None else self.seed + index * 0x5851F42D4C957F2D
        return Params(
            max_tokens=max_tokens,
            temperature=0.0 if self.temperature < 1e-5 else self.temperature,
            top_p=self.top_p,
            seed=seed,
            stop_ids=frozenset(self.stop_token_ids),
            stop_texts=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop),
            top=top,
        )


class CompletionBody(GenerationBody):
    prompt: str | list[int]
    max_tokens: int | None = Field(default=16, ge=1)
    logprobs: int | None = Field(default=None, ge=0, le=20)


class ChatBody(GenerationBody):
    messages: list[Json] = Field(min_length=1)
    tools: list[Json] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(default=0, ge=0, le=20)
    add_generation_prompt: bool = True


class TokenizeBody(BaseModel):
    model: str | None = None
    prompt: str | None = None
    messages: list[Json] | None = None
    tools: list[Json] | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool | None = False


class LoadAdapterBody(BaseModel):
    lora_name: str = Field(min_length=1)
    lora_path: str = Field(min_length=1)


class UnloadAdapterBody(BaseModel):
    lora_name: str = Field(min_length=1)


def plain_messages(messages: Sequence[Json]) -> list[Json]:
    """Messages with text content only, as the chat template reads them. Raises BadRequest."""
    return [_plain(message) for message in messages]


def envelope(
    kind: Literal["text_completion", "chat.completion", "chat.completion.chunk"], model: str
) -> Json:
    prefix = "cmpl" if kind == "text_completion" else "chatcmpl"
    return {
        "id": f"{prefix}-{secrets.token_hex(16)}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def usage(prompt_tokens: int, completion_tokens: int) -> Json:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def completion_logprobs(drawn: Sequence[Drawn], names: Sequence[str], offset: int, token_name: Any) -> Json:
    """``names`` are the drawn tokens as text; ``token_name`` turns any token id into text."""
    offsets = []
    for name in names:
        offsets.append(offset)
        offset += len(name)
    return {
        "tokens": list(names),
        "token_logprobs": [max(choice.logprob, -9999.0) for choice in drawn],
        "top_logprobs": [
            {token_name(token): value for token, value in ((choice.token, choice.logprob), *choice.top)}
            for choice in drawn
        ],
        "text_offset": offsets,
    }


def chat_logprobs(drawn: Sequence[Drawn], token_name: Any) -> Json:
    def entry(token: int, logprob: float) -> Json:
        name = token_name(token)
        return {"token": name, "logprob": max(logprob, -9999.0), "bytes": list(name.encode())}

    return {
        "content": [
            entry(choice.token, choice.logprob) | {"top_logprobs": [entry(*top) for top in choice.top]}
            for choice in drawn
        ]
    }


def _plain(message: Json) -> Json:
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "user", "assistant", "tool"):
        raise BadRequest(f"unknown role {role!r} in messages", param="messages")
    if isinstance(content, list):
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
            raise BadRequest("the pocket model reads text only", param="messages")
        content = "\n".join(str(part.get("text", "")) for part in content)
    if content is not None and not isinstance(content, str):
        raise BadRequest("message content must be text or a list of text parts", param="messages")
    return message | {"content": content or ""}
