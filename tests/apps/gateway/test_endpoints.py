"""External endpoints: one line for everybody who asks, one attempt a request, no address inside a cloud."""

import asyncio
import contextlib
import socket
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from aiohttp import web

from apps.gateway import answers as answers_module
from apps.gateway.endpoints import PATIENT, URGENT, EndpointKeeper, EndpointTerms
from apps.gateway.errors import GatewayError
from apps.gateway.records import Record
from apps.gateway.resolver import AddressRefused, CheckedResolver
from apps.versions.tokens import make_run_token
from tests.apps.gateway.world import KEY, World, answers, drops, hangs, part, sse, status, streams

FREE = EndpointTerms(max_concurrency=100)


def run_token(scope: str = "evals.run:3") -> str:
    return make_run_token(project_id=1, deployment_id=90, scope=scope)


async def routes(world: World, terms: EndpointTerms = FREE, url: str = "") -> None:
    world.endpoint_terms[90] = terms
    external = {"deployment_id": 90, "model": "gpt-x", "base_url": url or world.upstream.url}
    await world.routes(externals={"rival": external})


async def ask(world: World, key: str | None = None, **body: Any) -> httpx.Response:
    return await world.chat(key=key or run_token(), model="endpoint:rival", **body)


async def enter(keeper: EndpointKeeper, terms: EndpointTerms, **options: Any) -> Any:
    return await keeper.enter(1, terms, **{"tokens": 1.0, "patience_s": 5.0, **options})


class Clock:
    """Time that passes only when a test says so, however long the machine takes."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_two_runs_at_once_never_send_more_than_the_limit_and_its_burst(world: World) -> None:
    """600 a minute are 10 a second and 60 at once; what was let through is what the endpoint was sent."""
    await routes(world, EndpointTerms(max_concurrency=100, requests_per_minute=600))
    keeper = world.gateway._completions.endpoints
    let_through: list[float] = []
    take = keeper._take

    def watched(*arguments: Any) -> None:
        let_through.append(time.monotonic())
        take(*arguments)

    keeper._take = watched  # type: ignore[method-assign]
    world.upstream.plays("gpt-x", answers("ok"))
    started = time.monotonic()

    async def one_run(scope: str) -> set[int]:
        replies = await asyncio.gather(*(ask(world, run_token(scope)) for _ in range(45)))
        return {reply.status_code for reply in replies}

    assert await asyncio.gather(one_run("evals.run:1"), one_run("evals.run:2")) == [{200}, {200}]

    assert len(let_through) == len(world.upstream.seen) == 90
    assert time.monotonic() - started >= 2.9  # 90 less a burst of 60, at 10 a second
    for first, start in enumerate(let_through):
        for count in range(1, len(let_through) - first + 1):
            # Its own look at the clock came a moment before ours.
            assert count <= 60 + 10 * (let_through[first + count - 1] - start + 0.25) + 1


async def test_no_more_requests_at_once_than_the_endpoint_takes(world: World) -> None:
    await routes(world, EndpointTerms(max_concurrency=3))
    now, most, full = 0, 0, asyncio.Event()

    async def slow(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0.02)  # time for a fourth to come
        now -= 1
        return await answers("ok")(request, body)

    world.upstream.plays("gpt-x", slow)

    replies = await asyncio.gather(*(ask(world) for _ in range(12)), ask(world, KEY))

    assert {reply.status_code for reply in replies} == {200}
    assert most == 3


async def test_tokens_a_minute_hold_back_the_next_request() -> None:
    clock = Clock()
    keeper, terms = EndpointKeeper(clock), EndpointTerms(100, None, 60_000)  # 1,000 a second, 6,000 at once
    (await enter(keeper, terms, tokens=4000.0)).leave(6300)

    for clock.now in (0.0, 0.39):
        with pytest.raises(GatewayError):
            await enter(keeper, terms, tokens=100.0, patience_s=0.05)
    clock.now = 0.41

    assert (await enter(keeper, terms, tokens=100.0)).waited_s == 0.0


async def test_a_request_larger_than_the_burst_waits_until_it_is_full_and_goes() -> None:
    clock = Clock()
    keeper, terms = EndpointKeeper(clock), EndpointTerms(100, None, 60_000)
    (await enter(keeper, terms, tokens=1000.0)).leave(1000)

    with pytest.raises(GatewayError):
        await enter(keeper, terms, tokens=50_000.0, patience_s=0.05)
    clock.now = 1.0

    assert (await enter(keeper, terms, tokens=50_000.0)).waited_s == 0.0


async def test_tokens_that_were_not_used_are_given_back() -> None:
    keeper, terms = EndpointKeeper(Clock()), EndpointTerms(100, None, 60_000)

    (await enter(keeper, terms, tokens=6000.0)).leave(10)

    assert (await enter(keeper, terms, tokens=5000.0)).waited_s == 0.0


async def test_people_go_before_runs() -> None:
    keeper, terms, order = EndpointKeeper(), EndpointTerms(max_concurrency=1), []
    first = await enter(keeper, terms)

    async def wait(name: str, rank: int) -> None:
        slot = await enter(keeper, terms, rank=rank)
        order.append(name)
        slot.leave(1)

    waiting = [asyncio.create_task(wait(f"run {i}", PATIENT)) for i in range(2)]
    await asyncio.sleep(0)
    waiting.append(asyncio.create_task(wait("person", URGENT)))
    await asyncio.sleep(0)
    first.leave(1)
    await asyncio.gather(*waiting)

    assert order == ["person", "run 0", "run 1"]


async def test_whoever_waits_too_long_is_told_when_to_come_back() -> None:
    keeper, terms = EndpointKeeper(Clock()), EndpointTerms(100, 1)  # one a minute
    await enter(keeper, terms)

    with pytest.raises(GatewayError) as held_back:
        await enter(keeper, terms, patience_s=0.05)

    assert (held_back.value.status, held_back.value.code) == (429, "endpoint_busy")
    assert held_back.value.retry_after_s == pytest.approx(60.0)


async def test_a_caller_that_goes_away_leaves_its_place_to_the_next() -> None:
    keeper, terms = EndpointKeeper(), EndpointTerms(max_concurrency=1)
    first = await enter(keeper, terms)
    gone, next_one = (asyncio.create_task(enter(keeper, terms)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    first.leave(1)

    (await next_one).leave(1)

    assert (keeper.in_flight(1), keeper.waiting(1)) == (0, 0)


async def test_one_that_goes_away_as_its_turn_comes_gives_it_back() -> None:
    keeper, terms = EndpointKeeper(Clock()), EndpointTerms(max_concurrency=1)
    first = await enter(keeper, terms)
    gone = asyncio.create_task(enter(keeper, terms))
    await asyncio.sleep(0)
    first.leave(1)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)

    assert keeper.in_flight(1) == 0
    assert (await enter(keeper, terms)).waited_s == 0.0


async def test_several_gateways_keep_a_share_each() -> None:
    keeper, terms = EndpointKeeper(Clock()), EndpointTerms(4, 600)
    slots = [await enter(keeper, terms, share=2) for _ in range(2)]

    with pytest.raises(GatewayError):
        await enter(keeper, terms, share=2, patience_s=0.05)
    for slot in slots:
        slot.leave(1)
    sent = 0
    with contextlib.suppress(GatewayError):
        while sent < 100:
            (await enter(keeper, terms, share=2, patience_s=0.01)).leave(1)
            sent += 1

    assert sent == 28  # what is left of half a burst of 60


async def test_a_changed_limit_holds_from_the_next_request_on() -> None:
    keeper = EndpointKeeper(Clock())
    await enter(keeper, EndpointTerms(max_concurrency=1))

    assert (await enter(keeper, EndpointTerms(max_concurrency=2))).waited_s == 0.0


@pytest.mark.parametrize("as_date", [False, True])
async def test_nobody_asks_before_the_time_that_the_endpoint_named(world: World, as_date: bool) -> None:
    await routes(world)
    named: list[float] = []
    asked_again: list[float] = []

    async def busy(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        at = int(time.time()) + 3 if as_date else time.time() + 2
        named.append(at)
        when = format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True) if as_date else "2"
        return await status(429, **{"Retry-After": when})(request, body)

    async def answer(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        asked_again.append(time.time())
        return await answers("ok")(request, body)

    world.upstream.plays("gpt-x", busy, answer)
    refused = await ask(world)

    answered = await ask(world)

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "upstream_busy")
    assert int(refused.headers["retry-after"]) in (1, 2, 3)
    assert answered.status_code == 200
    assert asked_again[0] >= named[0] - 0.05  # two clocks
    assert float(answered.headers["x-flywheel-waited-ms"]) > 0


@pytest.mark.parametrize("code", [408, 409, 500, 501, 503, 529])
async def test_a_run_hears_the_endpoints_own_status(world: World, code: int) -> None:
    await routes(world)
    world.upstream.plays("gpt-x", status(code))

    reply = await ask(world)

    assert reply.status_code == 502
    assert reply.headers["x-flywheel-upstream-status"] == str(code)
    assert len(world.upstream.seen) == 1


async def test_a_spent_quota_is_told_apart_from_a_busy_endpoint(world: World) -> None:
    await routes(world)
    world.upstream.plays("gpt-x", status(429, {"error": {"message": "no", "code": "insufficient_quota"}}))

    assert (await ask(world)).json()["error"]["code"] == "upstream_quota"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_attempt_of_a_run_ends_with_its_time(world: World, stream: bool) -> None:
    await routes(world, EndpointTerms(timeout_s=0.2))
    world.upstream.plays("gpt-x", hangs())

    reply = await ask(world, stream=stream)

    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "upstream_timeout")


async def test_a_stream_of_a_run_that_stops_ends_with_its_time(world: World) -> None:
    await routes(world, EndpointTerms(timeout_s=2.0))  # enough for the half, also on a busy machine
    world.upstream.plays("gpt-x", hangs(sse(part("Half"))))

    reply = await ask(world, stream=True)

    assert "Half" in reply.text
    assert "upstream_timeout" in reply.text
    assert "[DONE]" not in reply.text


async def test_a_request_that_is_sent_again_counts_again(world: World) -> None:
    """A kept-alive connection that had gone is tried once more, and that is a second request."""
    await routes(world, EndpointTerms(100, 20))  # a burst of 2
    world.upstream.plays("gpt-x", drops(), answers("ok"))
    keeper = world.gateway._completions.endpoints
    keeper._clock = Clock()

    assert (await ask(world)).status_code == 200
    with pytest.raises(GatewayError):
        await keeper.enter(90, world.endpoint_terms[90], tokens=1, patience_s=0.05)


async def test_a_held_back_request_is_logged_as_what_it_was(world: World) -> None:
    await routes(world, EndpointTerms(100, 1, deadline_s=0.05))
    await ask(world)

    held_back = await ask(world)

    assert held_back.json()["error"]["code"] == "endpoint_busy"
    assert [(row["status"], row["error"]) for row in world.rows()] == [(200, ""), (429, "endpoint_busy")]


async def test_waiting_for_a_limit_is_no_latency(world: World) -> None:
    await routes(world, EndpointTerms(max_concurrency=1))

    async def slow(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return await streams(sse(part("Hi"), part(finish="stop"), "[DONE]"))(request, body)

    world.upstream.plays("gpt-x", slow)
    started = time.monotonic()
    await asyncio.gather(*(ask(world, stream=True) for _ in range(4)))
    elapsed_ms = 1000 * (time.monotonic() - started)

    rows = world.rows()
    assert all(row["ttft_ms"] <= row["latency_ms"] for row in rows)
    assert sum(row["latency_ms"] for row in rows) <= elapsed_ms  # with the waits it would be 2.5 times that


class Names:
    """A resolver that says what a test tells it to."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[Any]:
        return [
            {"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": 0}
            for address in self.addresses
        ]

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "100.100.100.200",
        "fd00:ec2::254",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "::169.254.169.254",
        "0.0.0.0",
        "::",
        "224.0.0.1",
    ],
)
async def test_a_name_that_leads_to_a_clouds_credentials_is_not_connected_to(address: str) -> None:
    with pytest.raises(AddressRefused):
        await CheckedResolver(Names(address)).resolve("models.example.com", 80)  # type: ignore[arg-type]


async def test_of_several_addresses_only_the_allowed_are_left() -> None:
    resolver = CheckedResolver(Names("169.254.169.254", "203.0.113.7"))  # type: ignore[arg-type]

    assert [found["host"] for found in await resolver.resolve("models.example.com", 80)] == ["203.0.113.7"]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "100.64.0.1", "::1", "fd12::7"])
async def test_private_networks_are_asked_only_where_the_installation_allows_it(
    settings: Any, address: str
) -> None:
    resolver = CheckedResolver(Names(address))  # type: ignore[arg-type]
    assert await resolver.resolve("inside.example.com", 80)

    settings.PRIVATE_ENDPOINTS = False

    with pytest.raises(AddressRefused):
        await resolver.resolve("inside.example.com", 80)


async def test_a_rebound_name_is_refused_at_the_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address was harmless when it was entered; what counts is where it leads now."""
    await routes(world, url="http://models.example.com:8080")
    external = world.gateway._upstream._external
    names = Names("169.254.169.254")
    monkeypatch.setattr(external.connector, "_resolver", CheckedResolver(names))  # type: ignore[arg-type]

    reply = await ask(world)

    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "endpoint_address")
    assert world.upstream.seen == []


@pytest.mark.parametrize("url", ["http://169.254.169.254", "http://[::ffff:a9fe:a9fe]", "http://2852039166"])
async def test_an_address_that_is_a_number_is_looked_at_too(world: World, url: str) -> None:
    await routes(world, url=url)

    assert (await ask(world)).json()["error"]["code"] == "endpoint_address"


async def test_a_refusal_that_quotes_a_key_is_passed_on_without_it(world: World) -> None:
    world.endpoint_keys[90] = "house-key-of-ours"
    await routes(world)
    said = "bad header Bearer house-key-of-ours; also sk-proj-abcdefghijklmnop1234567890 is unknown"
    told = {"error": {"message": said, "param": "house-key-of-ours"}}
    world.upstream.plays("gpt-x", status(400, told))

    response = await ask(world)

    assert response.status_code == 400
    assert "bad header" in response.text
    assert "house-key-of-ours" not in response.text
    assert "sk-proj-abcdef" not in response.text


def test_of_tool_calls_without_end_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_KEPT_CHARACTERS", 1_000)
    record = Record(project_id=1, operation="op", unit="u", revision=1)
    reader = answers_module.AnswerReader(record, name="rival", wants_usage=True, choices=1)
    for index in range(500):
        call = {"index": index % 3, "function": {"name": "f", "arguments": "x" * 100}}
        passed_on = reader.part({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        assert passed_on is not None

    kept = reader.content()["tool_calls"]
    assert sum(len(call["function"]["arguments"]) for call in kept) <= 1_100
