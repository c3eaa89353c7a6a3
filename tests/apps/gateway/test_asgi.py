"""The data path as a caller sees it: refusals, routes, headers, and what never leaves the process."""

import asyncio
import json
import logging
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from apps.core.crypto import decrypt_json
from apps.gateway.limits import Limits
from apps.versions.tokens import make_run_token
from tests.apps.gateway.world import (
    KEY,
    READ_KEY,
    World,
    answers,
    canary,
    drops,
    events_of,
    hangs,
    part,
    sse,
    status,
    streams,
    text_of,
)
from tests.waiting import GUARD_S

EXTERNAL = {"deployment_id": 90, "model": "gpt-x"}


@pytest.mark.parametrize(
    ("key", "expected", "code"),
    [
        ("", 401, "missing_api_key"),
        ("sk-someone-elses", 401, "invalid_api_key"),
        ("fw_unknown", 401, "invalid_api_key"),
        ("fwr_forged", 401, "invalid_run_token"),
        (READ_KEY, 403, "missing_scope"),
    ],
)
async def test_a_wrong_credential_is_refused_in_openais_shape(
    world: World, key: str, expected: int, code: str
) -> None:
    await world.routes()

    response = await world.chat(key=key)

    assert response.status_code == expected
    assert response.json()["error"]["code"] == code
    assert set(response.json()["error"]) == {"message", "type", "code", "param"}
    assert world.upstream.seen == []


async def test_a_key_made_a_moment_ago_works_at_once(world: World) -> None:
    await world.routes()
    keys = dict(world.gateway.snapshots.current.keys)
    object.__setattr__(world.gateway.snapshots.current, "keys", {})

    response = await world.chat()

    assert keys
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"\xff\xfe", None),
        (b"[1]", None),
        (b'{"messages": NaN}', None),
        (b'{"model": "auto"}', "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [{}], "model": 3}', "model"),
        (b'{"messages": [{}], "stream": "yes"}', "stream"),
        (b'{"messages": [{}], "stream_options": []}', "stream_options"),
        (b"[" * 100_000, None),
    ],
)
async def test_a_malformed_body_is_400(world: World, body: bytes, param: str | None) -> None:
    await world.routes()

    async with world.client() as client:
        response = await client.post("/v1/chat/completions", content=body)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
    assert world.gateway.limits.in_flight() == 0


async def test_unknown_addresses_and_methods_are_named(world: World) -> None:
    await world.routes()

    async with world.client() as client:
        missing = await client.post("/v1/embeddings", json={})
        method = await client.get("/v1/chat/completions")
        unknown = await client.post(
            "/v1/chat/completions", json={"model": "gpt-4", "messages": [{"role": "user", "content": "x"}]}
        )

    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert method.status_code == 405
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_project_without_a_version_in_service_is_not_ready(world: World) -> None:
    await world.gateway.start()

    response = await world.chat()

    assert (response.status_code, response.json()["error"]["code"]) == (503, "not_ready")
    assert "retry-after" in response.headers


async def test_requests_above_a_keys_limit_are_429_with_retry_after(world: World) -> None:
    world.limits = Limits(requests_per_minute=2, tokens_per_minute=1000, in_flight=5)
    await world.routes()

    codes = [(await world.chat()).status_code for _ in range(3)]
    refused = await world.chat()

    assert codes == [200, 200, 429]
    assert 1 <= int(refused.headers["retry-after"]) <= 31
    assert refused.json()["error"]["type"] == "rate_limit_error"


async def test_a_spent_token_budget_is_429(world: World) -> None:
    world.limits = Limits(requests_per_minute=100, tokens_per_minute=18, in_flight=5)
    await world.routes()

    codes = [(await world.chat()).status_code for _ in range(2)]

    assert codes == [200, 429]


async def test_task_types_and_aliases_choose_the_edition(world: World) -> None:
    await world.routes(world.upstream.url, high_speed=[world.upstream.url])

    editions = {
        "auto": (await world.chat()).headers["x-flywheel-edition"],
        "auto:interactive": (await world.chat(model="auto:interactive")).headers["x-flywheel-edition"],
        "auto:batch": (await world.chat(model="auto:batch")).headers["x-flywheel-edition"],
        "high-speed": (await world.chat(model="high-speed")).headers["x-flywheel-edition"],
        "flywheel:1.0": (await world.chat(model="flywheel:1.0")).headers["x-flywheel-edition"],
        "flywheel-1.0-high_speed": (await world.chat(model="flywheel-1.0-high_speed")).headers[
            "x-flywheel-edition"
        ],
        "header": (await world.chat(headers={"x-flywheel-task-type": "interactive"})).headers[
            "x-flywheel-edition"
        ],
    }

    assert editions == {
        "auto": "standard",
        "auto:interactive": "high_speed",
        "auto:batch": "standard",
        "high-speed": "high_speed",
        "flywheel:1.0": "standard",
        "flywheel-1.0-high_speed": "high_speed",
        "header": "high_speed",
    }


async def test_models_lists_aliases_versions_and_endpoints(world: World) -> None:
    await world.routes(**canary(0.1), externals={"openai": {**EXTERNAL, "base_url": world.upstream.url}})

    async with world.client() as client:
        names = [card["id"] for card in (await client.get("/v1/models")).json()["data"]]

    assert names == [
        "auto",
        "auto:batch",
        "auto:interactive",
        "auto:quality",
        "standard",
        "high-speed",
        "flywheel:1.0",
        "flywheel:1.1",
        "endpoint:openai",
    ]


async def test_a_pinned_version_stays_out_of_the_release(world: World) -> None:
    await world.routes(**canary(0.5))
    world.upstream.plays("adapter", status(500))

    response = await world.chat(model="flywheel:1.1")

    assert response.status_code == 502
    (row,) = world.rows()
    assert (row["release_id"], row["assigned_arm"], row["served_arm"]) == (None, "", "")
    assert {seen["model"] for seen in world.upstream.seen} == {"adapter"}


async def test_an_endpoint_gets_its_own_key_and_no_fields_of_ours(world: World) -> None:
    world.endpoint_keys = {90: "sk-provider"}
    await world.routes(externals={"openai": {**EXTERNAL, "base_url": world.upstream.url + "/v1"}})

    response = await world.chat(model="endpoint:openai")

    assert response.json()["model"] == "endpoint:openai"
    assert world.upstream.seen[0]["model"] == "gpt-x"
    assert "priority" not in world.upstream.seen[0]
    assert world.upstream.headers[0]["Authorization"] == "Bearer sk-provider"
    assert KEY not in json.dumps(world.upstream.headers)


async def test_a_providers_refusal_of_its_key_is_not_the_callers_401(world: World) -> None:
    await world.routes(externals={"openai": {**EXTERNAL, "base_url": world.upstream.url}})
    world.upstream.plays("gpt-x", status(401))

    response = await world.chat(model="endpoint:openai")

    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_auth")


@pytest.mark.parametrize("by_run", [True, False])
async def test_an_endpoint_registered_a_moment_ago_is_asked_at_once(world: World, by_run: bool) -> None:
    await world.routes()
    externals = {"openai": {**EXTERNAL, "base_url": world.upstream.url}}
    world.routing[1] = {**world.routing[1], "externals": externals}  # written, and not loaded yet
    token = make_run_token(project_id=1, deployment_id=90, scope="evals.run:5")

    asked = await (world.chat(key=token) if by_run else world.chat(model="endpoint:openai"))

    assert asked.status_code == 200


async def test_the_endpoint_of_a_run_that_is_gone_is_not_called_by_an_empty_name(world: World) -> None:
    await world.routes()

    asked = await world.chat(key=make_run_token(project_id=1, deployment_id=90, scope="evals.run:5"))

    assert asked.status_code == 404
    assert asked.json()["error"]["message"] == "The endpoint of this run is not registered any more."


async def test_a_run_token_reaches_its_endpoint_and_nothing_else(world: World) -> None:
    await world.routes(
        externals={
            "openai": {**EXTERNAL, "base_url": world.upstream.url},
            "other": {"deployment_id": 91, "model": "other", "base_url": world.upstream.url},
        }
    )
    token = make_run_token(project_id=1, deployment_id=90, scope="evals.run:5")

    response = await world.chat(key=token, model="endpoint:other")

    assert response.status_code == 200
    assert world.upstream.seen[0]["model"] == "gpt-x"
    (row,) = world.rows()
    assert (row["key_id"], row["content"], row["capture"]) == (None, None, "")
    stranger = make_run_token(project_id=1, deployment_id=92, scope="evals.run:5")
    assert (await world.chat(key=stranger)).status_code == 404


async def test_our_engines_get_our_priority_whatever_the_caller_says(world: World) -> None:
    await world.routes()

    await world.chat(priority=-100)

    assert world.upstream.seen[0]["priority"] == 0


async def test_a_refusal_by_the_model_reaches_the_caller_and_is_no_failure(world: World) -> None:
    await world.routes(**canary(1.0))
    told = {"error": {"message": "max_tokens is too large", "param": "max_tokens", "code": 400}}
    world.upstream.plays("adapter", status(400, told))

    response = await world.chat()

    assert response.status_code == 400
    assert response.json()["error"]["message"] == "max_tokens is too large"
    assert response.json()["error"]["param"] == "max_tokens"
    assert len(world.upstream.seen) == 1
    (row,) = world.rows()
    assert (row["failed"], row["assigned_failed"], row["error"]) == (False, False, "refused_by_model")


async def test_an_unreachable_engine_falls_back_to_the_other_edition(world: World) -> None:
    await world.routes("http://127.0.0.1:9", high_speed=[world.upstream.url])

    response = await world.chat()

    assert response.status_code == 200
    assert response.headers["x-flywheel-edition"] == "high_speed"


async def test_a_named_edition_is_never_replaced(world: World) -> None:
    await world.routes("http://127.0.0.1:9", high_speed=[world.upstream.url])

    response = await world.chat(model="standard")

    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_unreachable")


async def test_an_engine_that_hangs_is_504(world: World) -> None:
    world.gateway._read_timeout_s = 0.3
    await world.routes()
    world.upstream.plays("base", hangs())

    response = await world.chat()

    assert (response.status_code, response.json()["error"]["code"]) == (504, "upstream_timeout")


async def test_a_busy_engine_is_429_with_its_own_delay(world: World) -> None:
    await world.routes()
    world.upstream.plays("base", status(429, **{"Retry-After": "7"}))

    response = await world.chat()

    assert (response.status_code, response.headers["retry-after"]) == (429, "7")


async def test_a_dead_kept_alive_connection_is_tried_once_more(world: World) -> None:
    await world.routes()
    world.upstream.plays("base", drops(), answers("Second."))

    response = await world.chat()

    assert response.json()["choices"][0]["message"]["content"] == "Second."


async def test_plain_completions_stream_and_keep_their_text(world: World) -> None:
    await world.routes()
    chunk = {"id": "u", "model": "base", "choices": [{"index": 0, "text": "four", "finish_reason": "length"}]}
    world.upstream.plays("base", streams(sse(chunk, "[DONE]")))

    async with world.client() as client:
        response = await client.post(
            "/v1/completions", json={"model": "standard", "prompt": "2+2=", "stream": True}
        )

    assert events_of(response)[0]["choices"][0]["text"] == "four"
    (row,) = world.rows()
    content = decrypt_json(row["content"].encode())
    assert content["messages"] == [{"role": "user", "content": "2+2="}]
    assert content["answer"] == "four"


async def test_a_streams_tool_call_is_passed_on_and_kept_whole(world: World) -> None:
    await world.routes()

    def call(**function: str) -> dict[str, Any]:
        piece = {"index": 0, "id": "c1", "type": "function", "function": function}
        return {"id": "u", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}

    world.upstream.plays(
        "base",
        streams(
            sse(
                call(name="find", arguments='{"q":'),
                call(arguments='"x"}'),
                part(finish="tool_calls"),
                "[DONE]",
            )
        ),
    )

    await world.chat(stream=True)

    (row,) = world.rows()
    kept = decrypt_json(row["content"].encode())["tool_calls"]
    assert kept == [{"function": {"name": "find", "arguments": '{"q":"x"}'}, "id": "c1", "type": "function"}]


async def test_a_stream_reaches_the_caller_as_it_is_made(world: World) -> None:
    await world.routes()
    world.upstream.plays("base", hangs(sse(part("now"))))
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}

    async with (
        world.served() as client,
        client.stream("POST", "/v1/chat/completions", json=body) as response,
        asyncio.timeout(GUARD_S),
    ):
        async for line in response.aiter_lines():
            if "now" in line:
                break

    assert response.status_code == 200


async def test_a_lone_surrogate_breaks_nothing(world: World) -> None:
    await world.routes()
    half = json.dumps(part("\ud83d")), json.dumps(part(finish="stop")), "[DONE]"
    world.upstream.plays("base", answers("\ud83d"), streams(sse(*half)))

    whole = await world.chat(messages=[{"role": "user", "content": "\udc00"}])
    streamed = await world.chat(stream=True, messages=[{"role": "user", "content": "\udc00"}])

    assert whole.status_code == streamed.status_code == 200
    assert len(world.rows()) == 2


async def test_the_request_path_uses_no_sql(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.routes(**canary(0.5), externals={"openai": {**EXTERNAL, "base_url": world.upstream.url}})
    touched: list[str] = []
    monkeypatch.setattr(BaseDatabaseWrapper, "cursor", lambda *_: touched.append("cursor"))
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", lambda *_: touched.append("connect"))

    for changes in ({}, {"stream": True}, {"model": "endpoint:openai"}, {"model": "nothing"}):
        await world.chat(**changes)
    await world.chat(key=make_run_token(project_id=1, deployment_id=90, scope="s"))
    async with world.client() as client:
        await client.get("/v1/models")
    world.spool.flush(rotate=True)

    assert touched == []
    assert len(world.upstream.seen) == 4


async def test_prompts_answers_and_credentials_are_never_in_clear_on_disk_or_in_logs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.endpoint_keys = {90: "sk-provider-secret"}
    await world.routes(
        **canary(1.0),
        capture={"failures": True, "success_rate": 1.0},
        externals={"openai": {**EXTERNAL, "base_url": world.upstream.url}},
    )
    world.upstream.plays("adapter", status(500, {"error": {"message": "cannot serve Jane Roe"}}))
    world.upstream.plays("base", answers("Dear Jane Roe,"), status(500), drops())
    caplog.set_level(logging.DEBUG)
    session = {"x-flywheel-session": "jane@example.org"}

    for changes in ({}, {}, {"stream": True}, {"model": "endpoint:openai"}, {"user": "jane@example.org"}):
        await world.chat(
            messages=[{"role": "user", "content": "Write to Jane Roe"}], headers=session, **changes
        )
    rows = world.rows()

    disk = "".join(path.read_text() for path in world.spool.folder.iterdir())
    for secret in ("Jane Roe", "jane@example.org", "sk-provider-secret", KEY):
        assert secret not in disk
        assert secret not in caplog.text
    assert decrypt_json(rows[0]["content"].encode())["answer"] == "Dear Jane Roe,"
    assert len(rows) == 5
    assert len({row["unit"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("capture", "replies", "expected"),
    [
        ({"failures": True, "success_rate": 0.0}, answers("ok"), "held"),
        ({"failures": True, "success_rate": 1.0}, answers("ok"), "sample"),
        ({"failures": True, "success_rate": 0.0}, status(500), "failure"),
        ({"failures": False, "success_rate": 0.0}, status(500), ""),
        ({"failures": False, "success_rate": 0.0}, answers("ok"), ""),
        ({"failures": True, "success_rate": 1.0}, status(422), ""),
    ],
)
async def test_text_is_kept_as_the_revision_says(
    world: World, capture: dict[str, Any], replies: Any, expected: str
) -> None:
    await world.routes(capture=capture)
    world.upstream.plays("base", replies)

    await world.chat()

    (row,) = world.rows()
    assert row["capture"] == expected
    assert bool(row["content"]) is bool(expected)


async def test_a_row_says_what_was_asked_assigned_and_served(world: World) -> None:
    await world.routes(**canary(1.0, segment=2))
    headers = {
        "x-flywheel-session": "s1",
        "x-flywheel-family": "invoice-arithmetic",
        "x-flywheel-source": "vendor-7",
        "x-flywheel-external-id": "order-9",
        "x-flywheel-task-type": "batch",
    }

    response = await world.chat(headers=headers, stream=True)

    (row,) = world.rows()
    assert (
        row
        | {
            "project_id": 1,
            "operation": response.headers["x-flywheel-operation"],
            "key_id": 1,
            "family": "invoice-arithmetic",
            "source": "vendor-7",
            "external_id": "order-9",
            "task_type": "batch",
            "version_id": 11,
            "edition_kind": "standard",
            "release_id": 77,
            "segment": 2,
            "assigned_arm": "canary",
            "served_arm": "canary",
            "revision": 4,
            "status": 200,
            "error": "",
            "failed": False,
            "streamed": True,
            "completion_tokens": 7,
        }
        == row
    )
    assert 0 < row["ttft_ms"] <= row["latency_ms"]
    assert len(row["unit"]) == 32


async def test_metrics_need_the_scope_read_and_count_losses(world: World) -> None:
    await world.routes()
    await world.chat()

    async with world.client(READ_KEY) as client:
        allowed = await client.get("/v1/gateway/metrics")
    async with world.client() as client:
        refused = await client.get("/v1/gateway/metrics")

    assert "flywheel_gateway_rows_lost_total 0" in allowed.text
    assert 'status="200"} 1' in allowed.text
    assert refused.status_code == 403


async def test_feedback_takes_one_item_or_a_list(world: World) -> None:
    await world.routes()

    async with world.client() as client:
        one = await client.post("/v1/feedback", json={"operation": "op_1", "metric": "rating", "value": 1})
        many = await client.post("/v1/feedback", json=[{"operation": "op_1"}, {"inference_id": "op_2"}])
        wrong = await client.post("/v1/feedback", json="up")

    assert (one.status_code, many.status_code, wrong.status_code) == (202, 202, 400)
    assert [item["operation"] for item in world.feedback] == ["op_1", "op_1", "op_2"]


async def test_what_breaks_on_our_side_has_the_one_shape_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> Any:
        raise KeyError("secret text")

    await world.routes()
    monkeypatch.setattr(world.gateway, "_take_feedback", broken)

    async with world.client() as client:
        response = await client.post("/v1/feedback", json={"operation": "op_1", "value": 1})

    assert response.status_code == 500
    assert response.json()["error"]["code"] == "gateway_error"
    assert "secret" not in response.text


async def test_concurrent_operations_do_not_mix(world: World) -> None:
    await world.routes()

    async def echo(request: Any, body: dict[str, Any]) -> Any:
        await asyncio.sleep(0.01)
        return await answers(body["messages"][0]["content"])(request, body)

    world.upstream.plays("base", echo)

    responses = await asyncio.gather(
        *(
            world.chat(stream=i % 2 == 0, messages=[{"role": "user", "content": f"number {i}"}])
            for i in range(40)
        )
    )

    for i, response in enumerate(responses):
        said = (
            text_of(events_of(response))
            if i % 2 == 0
            else response.json()["choices"][0]["message"]["content"]
        )
        assert said == f"number {i}"
    assert len({row["operation"] for row in world.rows()}) == 40


async def test_before_the_first_snapshot_keys_are_not_called_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable() -> Any:
        raise OSError("no database")

    monkeypatch.setattr(world.gateway, "_load", unreachable)

    response = await world.chat()

    assert (response.status_code, response.json()["error"]["code"]) == (503, "not_ready")


async def test_an_error_event_of_the_upstream_is_a_failure_whatever_it_carries(world: World) -> None:
    await world.routes()
    world.upstream.plays("base", streams(sse(part("So")) + b"event: error\ndata: 7\n\n"))

    events = events_of(await world.chat(stream=True))

    assert events[-1]["error"]["code"] == "upstream_malformed"
    assert "[DONE]" not in events


GARBAGE: list[Any] = [
    {"index": [1], "delta": {"content": "x"}},
    {"index": 0, "delta": "text", "message": "text"},
    {"index": 0, "delta": {"tool_calls": "zz"}, "message": {"tool_calls": "zz"}},
    {"index": 0, "delta": {"tool_calls": [5]}, "message": {"tool_calls": [None]}},
    {"index": 0, "delta": {"tool_calls": [{"index": "a", "function": "f"}]}, "message": 5},
    {"index": 0, "delta": {"tool_calls": [{"function": {"name": 5, "arguments": {"a": 1}}}]}, "message": [1]},
]


@pytest.mark.parametrize("choice", GARBAGE)
async def test_garbage_in_a_stream_ends_it_with_an_error_event(world: World, choice: Any) -> None:
    await world.routes()
    garbage = {**part("x"), "choices": [choice]}
    world.upstream.plays("base", streams(sse(part("So")) + sse(garbage) + b"data: [DONE]\n\n"))

    events = events_of(await world.chat(stream=True))

    assert events[-1]["error"]["code"] == "upstream_malformed"
    assert "[DONE]" not in events


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
async def test_an_answer_that_is_no_json_is_not_passed_on(world: World, word: str) -> None:
    await world.routes()
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    body = {"choices": [choice], "created": float(word)}
    world.upstream.plays("base", status(200, body), streams(sse({**part("So"), "created": float(word)})))

    whole = await world.chat()
    streamed = await world.chat(stream=True)

    assert [whole.status_code, streamed.status_code] == [502, 502]


@pytest.mark.parametrize("choice", GARBAGE)
async def test_garbage_instead_of_an_answer_is_the_upstreams_failure(world: World, choice: Any) -> None:
    await world.routes()
    world.upstream.plays("base", status(200, {"choices": [choice]}))

    response = await world.chat()

    assert response.status_code == 502
    assert response.json()["error"]["code"] == "upstream_malformed"
