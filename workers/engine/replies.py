"""What an engine answers, read into numbers and text that can be stored, and what it refuses.

A server may be anybody's: every shape is possible, halves of surrogate pairs, counts that cannot be.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# What a person could read, and more than the longest answer that can be asked for. Results are kept and
# shown by the hundred.
TEXT_LIMIT = 1_000_000

# What reading JSON of another shape than the protocol's raises.
WRONG_SHAPE = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)


class EngineError(Exception):
    """The engine refused or could not be reached. ``status`` is 0 without an HTTP answer;
    ``retryable`` says whether a later attempt may succeed unchanged.

    ``code`` is the error's own, ``retry_after_s`` what the engine asked for. ``reached`` is False when
    the request cannot have arrived; ``attempts`` counts those that may have.
    """

    def __init__(
        self,
        status: int,
        message: str,
        retryable: bool,
        *,
        code: str = "",
        retry_after_s: float | None = None,
        reached: bool = True,
    ) -> None:
        super().__init__(
            f"engine answered {status}: {message}" if status else f"engine unreachable: {message}"
        )
        self.status = status
        self.message = message
        self.retryable = retryable
        self.code = code
        self.retry_after_s = retry_after_s
        self.reached = reached
        self.attempts = 1


@dataclass(frozen=True, slots=True)
class Completion:
    """Sampled tokens with the natural logs of the distribution that each was drawn from."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    model: str
    latency_ms: float
    attempts: int = 1
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """``ttft_ms`` is None when the answer was not streamed or carried no text. ``latency_ms`` and it
    are of the attempt that succeeded, without its wait for the endpoint's limits."""

    text: str
    tool_calls: tuple[Json, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    model: str
    ttft_ms: float | None
    latency_ms: float
    attempts: int = 1
    cached: bool = False


def read_completion(answer: Any, *, latency_ms: float) -> Completion:
    """A completion with token ids; raises EngineError where tokens and logprobs differ in number."""
    try:
        choice, usage = answer["choices"][0], answer["usage"]
        token_ids = tuple(int(token) for token in choice["token_ids"])
        logprobs = tuple(float(value) for value in choice["logprobs"]["token_logprobs"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineError(200, f"completion without token ids or logprobs ({error!r})", False) from error
    if len(token_ids) != len(logprobs):
        raise EngineError(200, f"{len(token_ids)} tokens but {len(logprobs)} logprobs", False)
    return Completion(
        token_ids=token_ids,
        logprobs=logprobs,
        text=choice["text"],
        finish_reason=choice["finish_reason"] or "",
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        model=answer["model"],
        latency_ms=latency_ms,
    )


def read_chat(answer: Any, *, model: str, latency_ms: float) -> ChatCompletion:
    """A chat answer in one piece; raises EngineError where it is none."""
    try:
        choice = answer["choices"][0]
        return chat_completion(
            text=choice["message"].get("content") or "",
            calls=choice["message"].get("tool_calls") or (),
            finish_reason=choice.get("finish_reason"),
            usage=answer.get("usage"),
            model=answer.get("model") or model,
            ttft_ms=None,
            latency_ms=latency_ms,
        )
    except WRONG_SHAPE as error:
        raise EngineError(200, f"chat answer without a choice ({error!r})", False) from error


def chat_completion(
    *,
    text: Any,
    calls: Sequence[Any],
    finish_reason: Any,
    usage: Any,
    model: Any,
    ttft_ms: float | None,
    latency_ms: float,
) -> ChatCompletion:
    """An answer from somebody else's server, as text and numbers that can be stored.

    Raises TypeError where the shape is another: text that is no text, a call that is no object; and
    EngineError where both together are longer than ``TEXT_LIMIT`` characters.
    """
    if not isinstance(text, str) or not all(isinstance(call, dict) for call in calls):
        raise TypeError("text and calls were expected")
    if len(text) + (len(json.dumps(calls)) if calls else 0) > TEXT_LIMIT:
        raise EngineError(200, f"an answer of more than {TEXT_LIMIT:,} characters", False)
    return ChatCompletion(
        text=_whole(text),
        tool_calls=tuple(_whole(call) for call in calls),
        finish_reason=_whole(str(finish_reason or "")),
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        model=_whole(str(model)).replace("\0", "\ufffd"),
        ttft_ms=ttft_ms,
        latency_ms=latency_ms,
    )


def error_parts(body: str | Json) -> tuple[str, str]:
    """Message and code of vLLM's or OpenAI's error object, or of plain text."""
    try:
        answer = json.loads(body) if isinstance(body, str) else body
        error = answer["error"]
        return str(error["message"]), str(error.get("code") or "")
    except (*WRONG_SHAPE,):
        return str(body)[:200], ""


def _whole(value: Any) -> Any:
    """``value`` with every half of a surrogate pair replaced: it has no UTF-8, so nothing could keep it."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def _count(usage: Any, name: str) -> int:
    """A number of tokens; 0 where the server says none, or one that cannot be."""
    value = usage.get(name) if isinstance(usage, dict) else None
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if known and isinstance(value, int) else 0
