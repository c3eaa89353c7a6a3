"""Symptoms that users of comparable products reported; each names where to read more."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from apps.gateway.errors import GatewayError, routing_errors
from domain.routing import plan_route
from tests.apps.gateway.world import (
    ROLE,
    USAGE,
    USAGE_PART,
    World,
    answers,
    canary,
    drops,
    events_of,
    hangs,
    part,
    routing,
    sse,
    status,
    streams,
    text_of,
)
from tests.waiting import becomes


@pytest.mark.parametrize(
    "broken",
    [drops(), streams(cut=True), streams(sse(ROLE), cut=True), streams(sse(ROLE)), status(503)],
    ids=["no headers", "headers only", "role only", "clean end without a token", "503"],
)
async def test_litellm_40404_stream_cut_before_the_first_token_uses_the_fallback(
    world: World, broken: Any
) -> None:
    await world.routes(**canary(1.0))
    world.upstream.plays("adapter", broken)
    world.upstream.plays("base", answers("From control."))

    response = await world.chat(stream=True)

    events = events_of(response)
    assert response.status_code == 200
    assert text_of(events) == "From control."
    assert events[-1] == "[DONE]"
    assert response.headers["x-flywheel-arm"] == "control"
    (row,) = world.rows()
    assert (row["assigned_arm"], row["served_arm"], row["assigned_failed"]) == ("canary", "control", True)


@pytest.mark.parametrize("cut", [True, False], ids=["connection torn", "ended without DONE"])
async def test_portkey_1797_upstream_cut_mid_stream_ends_with_an_error_event(world: World, cut: bool) -> None:
    await world.routes(**canary(1.0))
    world.upstream.plays("adapter", streams(sse(ROLE, part("Half an ans")), cut=cut))
    world.upstream.plays("base", answers("Other words."))

    response = await world.chat(stream=True)

    events = events_of(response)
    assert text_of(events) == "Half an ans"
    assert events[-1]["error"]["code"] == "upstream_cut"
    assert "[DONE]" not in events
    (row,) = world.rows()
    assert (row["status"], row["error"], row["failed"]) == (502, "upstream_cut", True)
    assert len(world.upstream.seen) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "overloaded", "code": 529}},
        {"choices": []},
        {"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "error"}]},
        {"object": "error"},
    ],
    ids=["error object", "no choices", "finish_reason error", "not a completion"],
)
async def test_litellm_36768_failure_inside_a_200_is_a_failure_to_the_client(
    world: World, body: dict[str, Any]
) -> None:
    await world.routes()
    world.upstream.plays("base", status(200, body))

    response = await world.chat()

    assert response.status_code == 502
    assert response.json()["error"]["type"] == "upstream_error"
    (row,) = world.rows()
    assert row["failed"] is True


async def test_litellm_36768_failure_inside_a_streamed_200_is_a_failure_to_the_client(world: World) -> None:
    await world.routes()
    failure = {"error": {"message": "out of memory", "code": 500}}
    world.upstream.plays("base", streams(sse(ROLE, part("So far"), failure)))

    events = events_of(await world.chat(stream=True))

    assert events[-1]["error"]["code"] == "upstream_error"
    assert "[DONE]" not in events


@pytest.mark.parametrize("asked", [False, True])
async def test_litellm_5632_usage_is_injected_logged_exactly_and_stripped(world: World, asked: bool) -> None:
    await world.routes()
    world.upstream.plays(
        "base",
        streams(sse(ROLE, part("A", usage=None), part(finish="stop", usage=None), USAGE_PART, "[DONE]")),
    )

    response = await world.chat(stream=True, **({"stream_options": {"include_usage": True}} if asked else {}))

    usages = [event["usage"] for event in events_of(response)[:-1] if event.get("usage")]
    assert world.upstream.seen[0]["stream_options"]["include_usage"] is True
    assert usages == ([USAGE] if asked else [])
    if not asked:
        assert "usage" not in response.text
    (row,) = world.rows()
    assert (row["prompt_tokens"], row["completion_tokens"]) == (11, 7)


@pytest.mark.parametrize("stream", [True, False])
async def test_litellm_37140_disconnect_before_the_first_token_cancels_upstream(
    world: World, stream: bool
) -> None:
    await world.routes()
    world.upstream.plays("base", hangs())
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    async with world.served() as client:
        call = asyncio.create_task(client.post("/v1/chat/completions", json=body))
        await becomes(lambda: world.upstream.seen)
        assert world.gateway.limits.in_flight("key:1") == 1

        call.cancel()

        await becomes(lambda: world.upstream.cancelled == 1)
        await becomes(lambda: world.gateway.limits.in_flight("key:1") == 0)
    (row,) = world.rows()
    assert (row["status"], row["error"], row["failed"]) == (499, "client_disconnected", False)


async def test_litellm_37140_disconnect_in_the_middle_cancels_upstream(world: World) -> None:
    await world.routes()
    world.upstream.plays("base", hangs(sse(ROLE, part("Once upon"))))
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
    async with world.served() as client:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for _ in response.aiter_bytes():
                break

        await becomes(lambda: world.upstream.cancelled == 1)
        await becomes(lambda: world.gateway.limits.in_flight() == 0)
    (row,) = world.rows()
    assert row["error"] == "client_disconnected"


async def test_aisix_111_a_character_split_across_chunks_is_intact(world: World) -> None:
    await world.routes()
    text = "naïve — 数据 🚲"
    data = sse(ROLE, part(text), part(finish="stop"), USAGE_PART, "[DONE]")
    world.upstream.plays("base", streams(*(data[i : i + 1] for i in range(len(data)))))

    response = await world.chat(stream=True)

    assert text_of(events_of(response)) == text


def test_litellm_33329_a_healthy_first_deployment_without_weight_gets_nothing() -> None:
    revision = routing(
        [
            {"base_url": "http://a", "weight": 0},
            {"base_url": "http://b", "weight": 1},
            {"base_url": "http://c", "weight": 3},
        ]
    )

    first = Counter(
        plan_route(revision, model="standard", task_type="", unit=f"unit-{i}").targets[0].base_url
        for i in range(4000)
    )

    assert first["http://a"] == 0
    assert 0.22 < first["http://b"] / 4000 < 0.28
    assert all(
        target.base_url != "http://a"
        for i in range(50)
        for target in plan_route(revision, model="standard", task_type="", unit=f"unit-{i}").targets
    )


def test_litellm_32308_exclusion_wins_over_a_sticky_unit() -> None:
    two = [{"base_url": "http://a"}, {"base_url": "http://b"}]
    stuck = next(
        unit
        for unit in (f"unit-{i}" for i in range(100))
        if plan_route(routing(two), model="standard", task_type="", unit=unit).targets[0].base_url
        == "http://a"
    )
    on_canary = routing(["http://a"], **canary(1.0))
    withdrawn = routing(["http://a"], **{**canary(1.0), "arms": routing([])["arms"]})

    excluded = routing([{"base_url": "http://a", "excluded": True}, {"base_url": "http://b"}])

    targets = plan_route(excluded, model="standard", task_type="", unit=stuck).targets
    assert [target.base_url for target in targets] == ["http://b"]
    assert plan_route(on_canary, model="standard", task_type="", unit=stuck).assigned_arm == "canary"
    plan = plan_route(withdrawn, model="standard", task_type="", unit=stuck)
    assert plan.assigned_arm == "control"
    assert {target.version for target in plan.targets} == {"1.0"}


async def test_flagger_1532_share_stays_at_its_weight_for_hours_of_returning_users(world: World) -> None:
    """Users come back many times; where only the canary is sticky, all of them would end on it."""
    await world.routes(**canary(0.2))
    users = [f"user-{i}" for i in range(60)]

    arms: dict[str, set[str]] = {user: set() for user in users}
    shares = []
    for _ in range(5):
        on_canary = 0
        for user in users:
            response = await world.chat(headers={"x-flywheel-session": user})
            arms[user].add(response.headers["x-flywheel-arm"])
            on_canary += response.headers["x-flywheel-arm"] == "canary"
        shares.append(on_canary / len(users))

    assert len(set(shares)) == 1
    assert 0.05 < shares[0] < 0.4
    assert all(len(seen) == 1 for seen in arms.values())


async def test_litellm_39455_one_call_with_three_attempts_is_one_operation(world: World) -> None:
    await world.routes(**canary(1.0))
    world.upstream.plays("adapter", drops())
    world.upstream.plays("base", answers("At last."))

    response = await world.chat()

    assert response.status_code == 200
    (row,) = world.rows()
    assert [(a["arm"], a["error"]) for a in row["attempts"]] == [
        ("canary", "upstream_cut"),
        ("canary", "upstream_cut"),
        ("control", ""),
    ]
    assert row["operation"] == response.headers["x-flywheel-operation"]
    metrics = world.gateway.metrics.text(1, in_flight=0, lost=0, waiting=0)
    assert 'operations_total{version="1.0",edition="standard",arm="control",status="200"} 1' in metrics
    assert "flywheel_gateway_latency_seconds_count 1" in metrics


@pytest.mark.parametrize("stream", [False, True])
async def test_litellm_31722_the_response_names_the_version_that_served(world: World, stream: bool) -> None:
    await world.routes(**canary(1.0))
    world.upstream.plays("adapter", status(404))
    world.upstream.plays("base", answers("Hello."))

    response = await world.chat(stream=stream)

    assert response.headers["x-flywheel-version"] == "1.0"
    assert response.headers["x-flywheel-edition"] == "standard"
    named = {e["model"] for e in events_of(response)[:-1]} if stream else {response.json()["model"]}
    assert named == {"flywheel-1.0-standard"}
    (row,) = world.rows()
    assert (row["version_id"], row["attempts"][0]["error"]) == (10, "model_not_loaded")


@pytest.mark.django_db
def test_litellm_37188_promotion_counts_when_every_living_gateway_is_on_the_revision(project: Any) -> None:
    from apps.core.registries import routing_lags
    from apps.gateway.services import instance_gone, instance_report

    def report(name: str, number: int) -> None:
        from django.utils import timezone

        instance_report(
            name=name,
            started_at=timezone.now(),
            revisions={project.pk: number},
            in_flight=0,
            rows_lost=0,
        )

    report("a", 2)
    report("b", 1)

    behind = [name for lag in routing_lags for name in lag(project, 2)]

    assert behind == ["b"]
    report("b", 2)
    assert [name for lag in routing_lags for name in lag(project, 2)] == []
    report("c", 1)
    instance_gone(name="c")
    assert [name for lag in routing_lags for name in lag(project, 2)] == []


async def test_tensorzero_1680_feedback_at_once_after_the_reply_is_accepted(world: World) -> None:
    await world.routes()
    reply = await world.chat()

    async with world.client() as client:
        response = await client.post(
            "/v1/feedback", json={"inference_id": reply.json()["id"], "metric": "rating", "value": False}
        )

    assert response.status_code == 202
    assert world.feedback == [
        {"operation": reply.headers["x-flywheel-operation"], "metric": "rating", "value": False}
    ]


@pytest.mark.parametrize(
    ("size", "expected"), [(32_769, 200), (1024 * 1024, 200), (4 * 1024 * 1024 + 1, 413)]
)
async def test_ai_gateway_827_bodies_up_to_the_limit_pass(world: World, size: int, expected: int) -> None:
    await world.routes()
    frame = json.dumps({"messages": [{"role": "user", "content": ""}]})
    body = frame.replace('""', '"' + "a" * (size - len(frame)) + '"').encode()

    async def chunks() -> Any:
        for start in range(0, size, 65_536):
            yield body[start : start + 65_536]

    async with world.served() as client:
        response = await client.post("/v1/chat/completions", content=chunks())

    assert len(body) == size
    assert response.status_code == expected
    if expected == 413:
        assert response.json()["error"]["code"] == "request_too_large"


def test_unknown_models_are_404() -> None:
    for model in ("gpt-4", "auto:nothing", "flywheel:9.9", "endpoint:none", "flywheel-1.0-huge"):
        with pytest.raises(GatewayError) as caught, routing_errors():
            plan_route(routing(["http://a"]), model=model, task_type="", unit="u")
        assert (caught.value.status, caught.value.param) == (404, "model")
