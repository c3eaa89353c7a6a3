"""The client against a scripted server: retries, error shapes, broken answers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.ports import NOBODY
from workers.engine import client as module
from workers.engine import replies
from workers.engine import stream as stream_module
from workers.engine.client import EngineClient, EngineError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Script:
    """A server that answers each request with the next handler, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Handler] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(request.headers.get("Authorization", ""))
        self.bodies.append(await request.json() if request.can_read_body else {})
        return await (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(request)


@pytest.fixture
async def script(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    monkeypatch.setattr(module, "_RETRY_DELAYS_S", (0.0, 0.0, 0.0))
    script = Script()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.handle)
    async with TestServer(app) as server:
        script.url = str(server.make_url("/"))
        yield script


def _says(status: int, body: Any) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer


def _streams(*events: Any, close: bool = False) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {data}\n\n".encode())
        if close and request.transport is not None:
            request.transport.close()
        return response

    return answer


def _completion(tokens: list[int], logprobs: list[float] | None) -> dict[str, Any]:
    choice = {"token_ids": tokens, "text": "x", "finish_reason": "stop"}
    choice["logprobs"] = None if logprobs is None else {"token_logprobs": logprobs}
    usage = {"prompt_tokens": 1, "completion_tokens": len(tokens)}
    return {"choices": [choice], "usage": usage, "model": "pocket"}


def _error(status: int) -> Handler:
    return _says(status, {"error": {"message": "not so", "type": "E", "code": status}})


async def _complete(url: str, **options: Any) -> module.Completion:
    async with EngineClient(url, **options) as engine:
        return await engine.complete_tokens(
            model="pocket", prompt_ids=[1], max_tokens=2, temperature=1.0, seed=3
        )


@pytest.mark.parametrize("suffix", ["", "v1", "v1/"])
async def test_base_url_is_accepted_with_and_without_v1(script: Script, suffix: str) -> None:
    script.answers = [_says(200, _completion([5, 2], [-0.1, -0.2]))]

    done = await _complete(script.url + suffix)

    assert (done.token_ids, done.logprobs) == ((5, 2), (-0.1, -0.2))


async def test_the_token_is_sent_as_a_bearer(script: Script) -> None:
    script.answers = [_says(200, _completion([2], [-0.1]))]

    await _complete(script.url, token="abc")

    assert script.headers == ["Bearer abc"]


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_a_status_that_says_later_is_tried_again(script: Script, status: int) -> None:
    script.answers = [_error(status), _error(status), _says(200, _completion([2], [-0.1]))]

    done = await _complete(script.url)

    assert done.token_ids == (2,)
    assert len(script.bodies) == 3


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_refusal_is_not_tried_again(script: Script, status: int) -> None:
    script.answers = [_error(status)]

    with pytest.raises(EngineError, match="not so") as refused:
        await _complete(script.url)

    assert (refused.value.status, refused.value.retryable) == (status, False)
    assert len(script.bodies) == 1


async def test_an_engine_that_stays_busy_is_given_up_after_four_tries(script: Script) -> None:
    script.answers = [_error(503)]

    with pytest.raises(EngineError) as refused:
        await _complete(script.url)

    assert (refused.value.status, refused.value.retryable) == (503, True)
    assert len(script.bodies) == 4


async def test_an_engine_that_is_not_there_is_retryable(script: Script) -> None:
    with pytest.raises(EngineError) as refused:
        await _complete(f"http://127.0.0.1:{NOBODY}")

    assert (refused.value.status, refused.value.retryable) == (0, True)


async def test_an_answer_that_comes_too_late_is_an_error(script: Script) -> None:
    async def sleep(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    script.answers = [sleep]

    with pytest.raises(EngineError, match="in time") as refused:
        await _complete(script.url, timeout_s=0.5)

    assert refused.value.retryable
    assert len(script.bodies) <= 1


@pytest.mark.parametrize("logprobs", [None, [-0.1]])
async def test_tokens_without_a_logprob_each_are_an_error(
    script: Script, logprobs: list[float] | None
) -> None:
    script.answers = [_says(200, _completion([5, 2], logprobs))]

    with pytest.raises(EngineError, match="logprobs"):
        await _complete(script.url)


async def test_an_error_in_plain_text_keeps_its_words(script: Script) -> None:
    async def plain(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text="out of memory")

    script.answers = [plain]

    with pytest.raises(EngineError, match="out of memory"):
        await _complete(script.url)


async def _chat(url: str, *, stream: bool = True) -> module.ChatCompletion:
    async with EngineClient(url) as engine:
        return await engine.chat(
            model="pocket",
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=2,
            tools=[{"type": "function"}],
            stream=stream,
        )


def _delta(**delta: Any) -> dict[str, Any]:
    return {"model": "pocket", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


_FINISH = {"model": "pocket", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def test_a_stream_is_put_together(script: Script) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}
    events = [_delta(role="assistant"), _delta(content="gr"), _delta(content="ün"), _FINISH, usage, "[DONE]"]
    script.answers = [_streams(*events)]

    answer = await _chat(script.url)

    assert (answer.text, answer.finish_reason) == ("grün", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (4, 2)
    assert script.bodies[0]["tool_choice"] == "none"


async def test_a_streamed_tool_call_is_put_together(script: Script) -> None:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"a"'}}
    second = {"index": 0, "function": {"arguments": ":1}"}}
    script.answers = [_streams(_delta(tool_calls=[first]), _delta(tool_calls=[second]), _FINISH, "[DONE]")]

    answer = await _chat(script.url)

    assert answer.tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"a":1}'}},
    )


@pytest.mark.parametrize("close", [False, True])
async def test_a_stream_that_breaks_off_is_an_error_and_not_tried_again(script: Script, close: bool) -> None:
    script.answers = [_streams(_delta(content="half"), close=close)]

    with pytest.raises(EngineError) as broken:
        await _chat(script.url)

    assert broken.value.retryable
    assert len(script.bodies) == 1


async def test_an_error_inside_a_stream_is_raised(script: Script) -> None:
    script.answers = [_streams(_delta(content="half"), {"error": {"message": "lost a worker", "code": 500}})]

    with pytest.raises(EngineError, match="lost a worker"):
        await _chat(script.url)


async def test_health_is_false_where_nobody_listens() -> None:
    async with EngineClient(f"http://127.0.0.1:{NOBODY}") as engine:
        assert not await engine.health()


@pytest.mark.parametrize(
    "events",
    [
        [5],
        [{"error": "no object"}],
        [{"choices": [{"delta": "text"}]}],
        [{"choices": [{"delta": {"content": 5}, "finish_reason": "stop"}]}],
        [{"choices": [{"delta": {"tool_calls": "zz"}, "finish_reason": "stop"}]}],
        [{"choices": [{"delta": {"tool_calls": [{"index": [1]}]}, "finish_reason": "stop"}]}],
        [_delta(tool_calls=[{"index": 1}, {"index": "a"}]), _FINISH],
        ["[" * 5000],
    ],
)
async def test_a_stream_of_another_shape_is_an_engines_error(script: Script, events: list[Any]) -> None:
    script.answers = [_streams(*events, "[DONE]")]

    with pytest.raises(EngineError):
        await _chat(script.url)


@pytest.mark.parametrize("tokens", [-3, 2**31, 2**70, "many", None, True, 1.5])
async def test_a_count_that_cannot_be_is_not_told(script: Script, tokens: Any) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": tokens}}
    script.answers = [_streams(_delta(content="a"), _FINISH, usage, "[DONE]")]

    answer = await _chat(script.url)

    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("a", 0, 0)


async def test_half_of_a_surrogate_pair_is_replaced_and_a_pair_in_two_parts_is_joined(script: Script) -> None:
    call = {"index": 0, "function": {"name": "f", "arguments": "\ud800"}}
    parts = [_delta(content="\ud83d"), _delta(content="\ude00\ud800", tool_calls=[call])]
    script.answers = [_streams(*parts, _FINISH, "[DONE]")]

    answer = await _chat(script.url)

    assert answer.text == "\U0001f600\ufffd"
    assert answer.tool_calls[0]["function"]["arguments"] == "\ufffd"


async def test_an_answer_in_one_long_part_is_read_whole(script: Script) -> None:
    script.answers = [_streams(_delta(content="x" * 900_000), _FINISH, "[DONE]")]

    assert len((await _chat(script.url)).text) == 900_000


async def test_an_answer_without_end_is_given_up(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "ANSWER_LIMIT", 100_000)
    script.answers = [_streams(*(_delta(content="x" * 50_000) for _ in range(5)), _FINISH, "[DONE]")]

    with pytest.raises(EngineError, match="more than"):
        await _chat(script.url)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_longer_than_any_that_was_asked_for_is_an_error(script: Script, stream: bool) -> None:
    """Results are read by the hundred: one of 16 MB each would fill the memory of whoever looks."""
    long = "x" * (replies.TEXT_LIMIT + 1)
    whole = _says(200, {"choices": [{"message": {"content": long}, "finish_reason": "stop"}]})
    script.answers = [_streams(_delta(content=long), _FINISH, "[DONE]") if stream else whole]

    with pytest.raises(EngineError, match="1,000,000 characters"):
        await _chat(script.url, stream=stream)


def _slow_stream(*events: Any, pause_s: float, **headers: str) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
        await response.prepare(request)
        for event in events:
            await asyncio.sleep(pause_s)
            await response.write(
                f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            )
        return response

    return answer


@pytest.mark.parametrize("said", ["content", "reasoning_content"])
async def test_the_first_token_is_the_first_that_says_something(script: Script, said: str) -> None:
    script.answers = [
        _slow_stream(
            _delta(role="assistant"),
            _delta(**{said: "a"}),
            _delta(content="b"),
            _FINISH,
            "[DONE]",
            pause_s=0.1,
        )
    ]

    answer = await _chat(script.url)

    assert 190 <= (answer.ttft_ms or 0) < answer.latency_ms - 90
    assert answer.latency_ms >= 390


async def test_an_answer_in_one_piece_has_a_latency_and_no_first_token(script: Script) -> None:
    message = {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}

    async def late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return web.json_response({"choices": [message], "model": "m"})

    script.answers = [late]
    async with EngineClient(script.url) as engine:
        answer = await engine.chat(model="m", messages=[], max_tokens=1, stream=False)

    assert answer.ttft_ms is None
    assert answer.latency_ms >= 95


async def test_only_the_attempt_that_succeeds_is_timed(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_DELAYS_S", (0.3, 0.3, 0.3))
    refused: list[float] = []

    async def refuses(request: web.Request) -> web.StreamResponse:
        refused.append(time.monotonic())
        return web.json_response({}, status=503)

    script.answers = [refuses, refuses, _streams(_delta(content="a"), _FINISH, "[DONE]")]

    latency_ms = (await _chat(script.url)).latency_ms

    since_last_refusal_ms = 1000 * (time.monotonic() - refused[1])
    assert len(refused) == 2
    assert latency_ms <= since_last_refusal_ms - 300 + 5  # the pause before it is not its own


async def test_a_wait_for_the_endpoints_limits_is_no_latency(script: Script) -> None:
    headers = {"x-flywheel-waited-ms": "250.0"}
    script.answers = [_slow_stream(_delta(content="a"), _FINISH, "[DONE]", pause_s=0.15, **headers)]

    started = time.monotonic()
    answer = await _chat(script.url)
    elapsed_ms = 1000 * (time.monotonic() - started)

    assert answer.latency_ms <= elapsed_ms - 250 + 5
    assert answer.ttft_ms is not None


def _refuses(status: int, code: str = "", **headers: str) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": "no", "code": code}}, status=status, headers=headers)

    return answer


@pytest.mark.parametrize(
    ("upstream", "retryable"),
    [("408", True), ("409", True), ("500", True), ("529", True), ("501", False), ("400", False)],
)
async def test_an_endpoints_own_status_decides_behind_the_gateway(
    script: Script, upstream: str, retryable: bool
) -> None:
    script.answers = [_refuses(502, "upstream_error", **{"x-flywheel-upstream-status": upstream})]

    with pytest.raises(EngineError) as refused:
        await _complete(script.url, once=True)

    assert (refused.value.status, refused.value.retryable) == (int(upstream), retryable)
    assert len(script.bodies) == 1


@pytest.mark.parametrize(
    "code", ["upstream_auth", "upstream_quota", "insufficient_quota", "endpoint_address"]
)
async def test_what_no_retry_mends_is_not_retryable(script: Script, code: str) -> None:
    script.answers = [_refuses(429, code)]

    with pytest.raises(EngineError) as refused:
        await _complete(script.url, once=True)

    assert (refused.value.code, refused.value.retryable) == (code, False)


async def test_what_the_gateway_says_about_when_is_kept(script: Script) -> None:
    script.answers = [_refuses(429, "upstream_busy", **{"Retry-After": "7"})]

    with pytest.raises(EngineError) as refused:
        await _complete(script.url, once=True)

    assert refused.value.retry_after_s == 7.0


async def test_a_gateway_that_is_away_was_not_reached() -> None:
    with pytest.raises(EngineError) as refused:
        await _complete(f"http://127.0.0.1:{NOBODY}", once=True)

    assert refused.value.reached is False


async def test_half_of_a_surrogate_pair_is_sent_escaped(script: Script) -> None:
    script.answers = [_streams(_delta(content="a"), _FINISH, "[DONE]")]
    async with EngineClient(script.url) as engine:
        await engine.chat(model="m", messages=[{"role": "user", "content": "\ud800 ü"}], max_tokens=1)

    assert script.bodies[0]["messages"][0]["content"] == "\ud800 ü"
