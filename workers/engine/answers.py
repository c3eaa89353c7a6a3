"""How finished and streamed sequences are shown: completions and chat."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from workers.engine.batching import Delta, Request
from workers.engine.text import Text, Unrolling, cut
from workers.engine.wire import (
    ChatBody,
    CompletionBody,
    GenerationBody,
    Json,
    chat_logprobs,
    completion_logprobs,
    envelope,
    usage,
)


class Answer(Protocol):
    """One HTTP answer. ``whole`` for a plain one; ``opening``, then ``pieces`` for each delta,
    then ``closing`` for a stream."""

    def whole(self, requests: Sequence[Request]) -> Json: ...
    def opening(self) -> Iterator[Json]: ...
    def pieces(self, delta: Delta) -> Iterator[Json]: ...
    def closing(self, requests: Sequence[Request]) -> Iterator[Json]: ...


class CompletionAnswer:
    def __init__(self, text: Text, body: CompletionBody, prompt: list[int], model: str) -> None:
        self._text, self._body, self._prompt = text, body, prompt
        self._head = envelope("text_completion", model)
        self._unrolled = _unrolled(text, body)
        self._offsets = [0] * body.n
        self._opened: set[int] = set()

    def whole(self, requests: Sequence[Request]) -> Json:
        choices = [self._choice(Delta(r, tuple(r.drawn), r.finish_reason)) for r in requests]
        return self._head | {"choices": choices, "usage": _usage(self._prompt, requests)}

    def opening(self) -> Iterator[Json]:
        yield from ()

    def pieces(self, delta: Delta) -> Iterator[Json]:
        yield self._head | {"choices": [self._choice(delta)]}

    def closing(self, requests: Sequence[Request]) -> Iterator[Json]:
        if _wants_usage(self._body):
            yield self._head | {"choices": [], "usage": _usage(self._prompt, requests)}

    def _choice(self, delta: Delta) -> Json:
        request = delta.request
        choice: Json = {
            "index": request.index,
            "text": self._unrolled[request.index].add(delta.drawn, finished=bool(delta.finish_reason)),
            "logprobs": None,
            "finish_reason": delta.finish_reason or None,
            "stop_reason": request.stop_reason if delta.finish_reason else None,
        }
        if self._body.logprobs is not None:
            names = [self._text.name_of(drawn.token) for drawn in delta.drawn]
            offset = self._offsets[request.index]
            choice["logprobs"] = completion_logprobs(delta.drawn, names, offset, self._text.name_of)
            self._offsets[request.index] = offset + sum(map(len, names))
        if self._body.return_token_ids:
            choice["token_ids"] = [drawn.token for drawn in delta.drawn]
            choice["prompt_token_ids"] = None if request.index in self._opened else self._prompt
            self._opened.add(request.index)
        return choice


class ChatAnswer:
    def __init__(self, text: Text, body: ChatBody, prompt: list[int], model: str) -> None:
        self._text, self._body, self._prompt = text, body, prompt
        self._head = envelope("chat.completion.chunk" if body.stream else "chat.completion", model)
        self._unrolled = _unrolled(text, body)

    def whole(self, requests: Sequence[Request]) -> Json:
        answer = self._head | {
            "choices": [self._message(request) for request in requests],
            "usage": _usage(self._prompt, requests),
        }
        return answer | ({"prompt_token_ids": self._prompt} if self._body.return_token_ids else {})

    def opening(self) -> Iterator[Json]:
        first: Json = {"prompt_token_ids": self._prompt} if self._body.return_token_ids else {}
        for index in range(self._body.n):
            delta = {"role": "assistant", "content": ""}
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
            yield self._head | {"choices": [choice]} | first

    def pieces(self, delta: Delta) -> Iterator[Json]:
        request = delta.request
        piece = self._unrolled[request.index].add(delta.drawn, finished=bool(delta.finish_reason))
        if not (piece or delta.finish_reason or self._body.logprobs or self._body.return_token_ids):
            return
        choice: Json = {
            "index": request.index,
            "delta": {"content": piece} if piece else {},
            "logprobs": chat_logprobs(delta.drawn, self._text.name_of) if self._body.logprobs else None,
            "finish_reason": delta.finish_reason or None,
        }
        if delta.finish_reason:
            choice["stop_reason"] = request.stop_reason
        if self._body.return_token_ids:
            choice["token_ids"] = [drawn.token for drawn in delta.drawn]
        yield self._head | {"choices": [choice]}

    def closing(self, requests: Sequence[Request]) -> Iterator[Json]:
        if _wants_usage(self._body):
            yield self._head | {"choices": [], "usage": _usage(self._prompt, requests)}

    def _message(self, request: Request) -> Json:
        ids = [drawn.token for drawn in request.drawn]
        choice: Json = {
            "index": request.index,
            "message": {
                "role": "assistant",
                "content": cut(self._text.decode(ids), request.params.stop_texts),
                "tool_calls": [],
            },
            "logprobs": chat_logprobs(request.drawn, self._text.name_of) if self._body.logprobs else None,
            "finish_reason": request.finish_reason,
            "stop_reason": request.stop_reason,
        }
        return choice | ({"token_ids": ids} if self._body.return_token_ids else {})


def _unrolled(text: Text, body: GenerationBody) -> list[Unrolling]:
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop)
    return [Unrolling(text, stops) for _ in range(body.n)]


def _usage(prompt: Sequence[int], requests: Sequence[Request]) -> Json:
    return usage(len(prompt), sum(len(request.drawn) for request in requests))


def _wants_usage(body: GenerationBody) -> bool:
    return body.stream_options is not None and body.stream_options.include_usage
