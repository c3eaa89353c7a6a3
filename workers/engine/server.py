"""The pocket server's HTTP face: the subset of vLLM's API that Flywheel uses, over aiohttp.

Not served: log-probabilities of the prompt, beam search, guided decoding, penalties, parsing
of tool calls (a call stays in ``content`` as the model wrote it).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError
from torch import Tensor

from workers.engine.adapters import AdapterRefused, Served, merged
from workers.engine.answers import Answer, ChatAnswer, CompletionAnswer
from workers.engine.batching import Delta, Request
from workers.engine.loop import EngineLoop, EngineStopped, Ticket
from workers.engine.metrics import exposition
from workers.engine.model import ModelConfig
from workers.engine.text import Text
from workers.engine.wire import (
    BadRequest,
    ChatBody,
    CompletionBody,
    GenerationBody,
    Json,
    LoadAdapterBody,
    TokenizeBody,
    UnloadAdapterBody,
    plain_messages,
)

VERSION = "pocket-0.1"
MAX_BODY_BYTES = 4 << 20
Body = TypeVar("Body", bound=BaseModel)
log = logging.getLogger(__name__)


class PocketServer:
    """Handlers and the table of served names, the base model first. ``base`` holds its tensors."""

    def __init__(
        self,
        *,
        config: ModelConfig,
        base: dict[str, Tensor],
        served: Sequence[Served],
        text: Text,
        engine: EngineLoop,
    ) -> None:
        self._name = served[0].name
        self._config, self._base = config, base
        self._text, self._engine = text, engine
        self._served = {entry.name: entry for entry in served}
        self._used_names = set(self._served)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors])
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/version", self.version),
                web.get("/metrics", self.metrics),
                web.get("/v1/models", self.models),
                web.post("/v1/completions", self.completions),
                web.post("/v1/chat/completions", self.chat),
                web.post("/tokenize", self.tokenize),
                web.post("/v1/load_lora_adapter", self.load_adapter),
                web.post("/v1/unload_lora_adapter", self.unload_adapter),
            ]
        )
        return app

    async def health(self, request: web.Request) -> web.Response:
        return web.Response(status=503 if self._engine.failed else 200)

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    async def metrics(self, request: web.Request) -> web.Response:
        batcher = self._engine.batcher
        text = exposition(
            batcher.counters,
            model=self._name,
            running=len(batcher.rows),
            waiting=self._engine.waiting,
            slots=batcher.slots,
        )
        return web.Response(text=text, content_type="text/plain")

    async def models(self, request: web.Request) -> web.Response:
        cards = [
            {
                "id": served.name,
                "object": "model",
                "created": 0,
                "owned_by": "flywheel",
                "root": served.root,
                "parent": served.parent,
                "max_model_len": self._engine.batcher.max_length if served.parent is None else None,
            }
            for served in self._served.values()
        ]
        return web.json_response({"object": "list", "data": cards})

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request, CompletionBody)
        prompt = self._text.encode(body.prompt) if isinstance(body.prompt, str) else body.prompt
        answer = CompletionAnswer(self._text, body, prompt, self._model(body.model).name)
        return await self._generate(request, body, prompt, body.max_tokens, body.logprobs or 0, answer)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request, ChatBody)
        prompt = self._prompt(body.messages, body.tools, body.add_generation_prompt)
        top = (body.top_logprobs or 0) if body.logprobs else 0
        answer = ChatAnswer(self._text, body, prompt, self._model(body.model).name)
        return await self._generate(
            request, body, prompt, body.max_completion_tokens or body.max_tokens, top, answer
        )

    async def tokenize(self, request: web.Request) -> web.Response:
        body = await _body(request, TokenizeBody)
        self._model(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise BadRequest("give either prompt or messages")
        if body.messages is None:
            ids = self._text.encode(body.prompt or "")
        else:
            ids = self._prompt(body.messages, body.tools, body.add_generation_prompt)
        answer: Json = {"count": len(ids), "max_model_len": self._engine.batcher.max_length, "tokens": ids}
        answer["token_strs"] = (
            [self._text.name_of(token) for token in ids] if body.return_token_strs else None
        )
        return web.json_response(answer)

    async def load_adapter(self, request: web.Request) -> web.Response:
        body = await _body(request, LoadAdapterBody)
        name = body.lora_name
        if name in self._used_names:
            raise BadRequest(f"The lora adapter '{name}' has already been loaded.", kind="InvalidUserInput")
        try:
            weights = await asyncio.to_thread(merged, self._config, self._base, Path(body.lora_path))
        except AdapterRefused as error:
            raise BadRequest(str(error), status=404 if error.missing else 400) from error
        if name in self._used_names:
            raise BadRequest(f"The lora adapter '{name}' has already been loaded.", kind="InvalidUserInput")
        self._used_names.add(name)
        self._served[name] = Served(name=name, weights=weights, root=body.lora_path, parent=self._name)
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def unload_adapter(self, request: web.Request) -> web.Response:
        body = await _body(request, UnloadAdapterBody)
        served = self._served.get(body.lora_name)
        if served is None or served.parent is None:
            raise BadRequest(f"The lora adapter '{body.lora_name}' cannot be found.", status=404)
        del self._served[body.lora_name]
        return web.Response(text=f"Success: LoRA adapter '{body.lora_name}' removed successfully.")

    async def _generate(
        self,
        http: web.Request,
        body: GenerationBody,
        prompt: list[int],
        max_tokens: int | None,
        top: int,
        answer: Answer,
    ) -> web.StreamResponse:
        body.refuse_unsupported()
        served = self._model(body.model)
        allowed = self._allowed_tokens(prompt, max_tokens)
        requests = [
            Request(
                prompt=prompt,
                params=body.params(max_tokens=allowed, top=top, index=index),
                served=served,
                priority=body.priority,
                streaming=body.stream,
                index=index,
            )
            for index in range(body.n)
        ]
        async with self._submitted(requests) as ticket:
            if body.stream:
                return await _stream(http, ticket, answer)
            async for _ in _deltas(ticket):
                pass
        return web.json_response(answer.whole(requests))

    @asynccontextmanager
    async def _submitted(self, requests: list[Request]) -> AsyncIterator[Ticket]:
        """A running ticket; whatever is unfinished at the end, a lost client's too, is cancelled."""
        ticket = self._engine.submit(requests)
        try:
            yield ticket
        finally:
            self._engine.cancel(ticket)

    def _allowed_tokens(self, prompt: list[int], max_tokens: int | None) -> int:
        limit, size = self._engine.batcher.max_length, len(prompt)
        if not prompt:
            raise BadRequest("the prompt is empty", param="prompt")
        if min(prompt) < 0 or max(prompt) >= self._config.vocab:
            raise BadRequest("the prompt holds token ids outside of the vocabulary", param="prompt")
        if size + (max_tokens or 1) > limit:
            raise BadRequest(
                f"This model's maximum context length is {limit} tokens. However, your request has {size} "
                f"input tokens and asks for {max_tokens or 1} output tokens.",
                param="max_tokens" if size < limit else "prompt",
            )
        return max_tokens or limit - size

    def _model(self, name: str | None) -> Served:
        served = self._served.get(name or self._name)
        if served is None:
            raise BadRequest(f"The model `{name}` does not exist.", status=404, param="model")
        return served

    def _prompt(self, messages: list[Json], tools: list[Json] | None, generation: bool) -> list[int]:
        try:
            return self._text.chat(plain_messages(messages), tools, generation)
        except BadRequest:
            raise
        except Exception as error:  # a template fails in as many ways as there are bad inputs
            raise BadRequest(f"messages or tools do not fit the chat template: {error}") from error


async def _deltas(ticket: Ticket) -> AsyncIterator[Delta]:
    """Deltas until every sequence has finished. Raises EngineStopped."""
    unfinished = len(ticket.requests)
    while unfinished:
        delta = await ticket.deltas.get()
        if delta is None:
            raise EngineStopped("the engine has stopped")
        unfinished -= bool(delta.finish_reason)
        yield delta


async def _stream(http: web.Request, ticket: Ticket, answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    await response.prepare(http)

    async def send(payload: Json) -> None:
        await response.write(b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n")

    for payload in answer.opening():
        await send(payload)
    try:
        async for delta in _deltas(ticket):
            for payload in answer.pieces(delta):
                await send(payload)
    except EngineStopped as error:
        await send(_error_body(500, "InternalServerError", str(error)))
    else:
        for payload in answer.closing(ticket.requests):
            await send(payload)
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def _body(request: web.Request, kind: type[Body]) -> Body:
    try:
        raw = json.loads(await request.read())
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"{where}: {first['msg']}", param=where or None) from error
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        body = _error_body(error.status, error.kind, str(error), error.param)
        return web.json_response(body, status=error.status)
    except EngineStopped as error:
        return web.json_response(_error_body(503, "ServiceUnavailable", str(error)), status=503)
    except web.HTTPException as error:
        kind = "NotFoundError" if error.status == 404 else "BadRequestError"
        return web.json_response(_error_body(error.status, kind, error.reason), status=error.status)


def _error_body(status: int, kind: str, message: str, param: str | None = None) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
