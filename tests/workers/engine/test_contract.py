"""What every engine answers, word for word the same for the pocket server and for vLLM.

pytest tests/workers/engine/test_contract.py                 # pocket server
FLYWHEEL_VLLM_PYTHON=.venv-vllm/bin/python pytest ... -m vllm
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from packs.starter.tasks import generate
from tests.waiting import GUARD_S
from workers.engine.client import EngineClient, EngineError

END = 2  # <|end|>, the model's end-of-turn
MESSAGES = [
    {
        "role": "user",
        "content": "Invoice INV-204\nNorden Tools\nDate 2024-03-14\nTotal 99.50 EUR\nJSON: invoice, total",
    }
]
TASK = generate("invoice_fields", seed=5, count=1)[0]


async def _ids(engine: EngineClient, text: str = str(MESSAGES[0]["content"])) -> tuple[int, ...]:
    return await engine.tokenize(model="pocket", messages=[{"role": "user", "content": text}])


async def _post(http: aiohttp.ClientSession, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async with http.post(path, json={"model": "pocket"} | body) as response:
        return response.status, await response.json()


async def _events(http: aiohttp.ClientSession, path: str, **body: Any) -> list[dict[str, Any]]:
    """All events of a stream; it must end with [DONE]."""
    async with http.post(path, json={"model": "pocket", "stream": True} | body) as response:
        assert response.status == 200
        lines = [line.strip() async for line in response.content]
    data = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    assert data[-1] == b"[DONE]"
    return [json.loads(item) for item in data[:-1]]


async def test_health_and_version_answer(engine_url: str, http: aiohttp.ClientSession) -> None:
    async with EngineClient(engine_url) as engine:
        healthy = await engine.health()

    assert healthy
    async with http.get("/version") as response:
        assert "version" in await response.json()


async def test_base_model_is_listed_with_its_length(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/models") as response:
        cards = (await response.json())["data"]

    assert cards[0]["id"] == "pocket"
    assert cards[0]["parent"] is None
    assert cards[0]["max_model_len"] == 512


async def test_every_sampled_token_comes_with_its_logprob(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        prompt = await _ids(engine)
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=prompt, max_tokens=24, temperature=1.0, seed=7
        )

    assert len(done.token_ids) == len(done.logprobs) == done.completion_tokens
    assert all(value <= 0.0 for value in done.logprobs)
    assert done.prompt_tokens == len(prompt)
    assert done.model == "pocket"


async def test_end_of_turn_is_among_the_tokens_and_not_in_the_text(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=await _ids(engine), max_tokens=64, temperature=0.0, seed=0
        )

    assert done.finish_reason == "stop"
    assert done.token_ids[-1] == END
    assert END not in done.token_ids[:-1]
    assert "<|" not in done.text


async def test_text_and_ids_of_the_same_prompt_give_the_same_answer(
    engine_url: str, http: aiohttp.ClientSession
) -> None:
    text = "<|bos|><|user|>Write f(x): 3 times x plus 4<|end|><|assistant|>"
    async with EngineClient(engine_url) as engine:
        ids = await _ids(engine, "Write f(x): 3 times x plus 4")

    _, by_text = await _post(http, "/v1/completions", prompt=text, temperature=0, max_tokens=24)
    _, by_ids = await _post(http, "/v1/completions", prompt=list(ids), temperature=0, max_tokens=24)

    assert by_text["choices"][0]["text"] == by_ids["choices"][0]["text"]
    assert by_text["usage"] == by_ids["usage"]


async def test_token_ids_are_returned_on_request_only(engine_url: str, http: aiohttp.ClientSession) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine))

    _, asked = await _post(http, "/v1/completions", prompt=ids, max_tokens=2, return_token_ids=True)
    _, unasked = await _post(http, "/v1/completions", prompt=ids, max_tokens=2)

    assert asked["choices"][0]["prompt_token_ids"] == ids
    assert len(asked["choices"][0]["token_ids"]) == asked["usage"]["completion_tokens"]
    assert unasked["choices"][0].get("token_ids") is None


async def test_a_seed_fixes_the_answer_whatever_else_is_in_the_batch(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        prompt = await _ids(engine)
        other = await _ids(engine, "Write solve(xs): sum of xs plus 5")

        async def sample(seed: int, ids: tuple[int, ...] = prompt) -> tuple[int, ...]:
            done = await engine.complete_tokens(
                model="pocket", prompt_ids=ids, max_tokens=20, temperature=1.0, seed=seed
            )
            return done.token_ids

        alone = [await sample(seed) for seed in range(4)]
        crowd = await asyncio.gather(
            *(sample(seed) for seed in range(4)), *(sample(seed, other) for seed in range(20))
        )

    assert list(crowd[:4]) == alone
    assert len(set(alone)) > 1


async def test_logprobs_are_those_of_the_tempered_distribution(
    engine_url: str, http: aiohttp.ClientSession
) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine))

    async def top(temperature: float) -> dict[str, float]:
        body = {"prompt": ids, "max_tokens": 1, "logprobs": 5, "temperature": temperature, "seed": 1}
        _, answer = await _post(http, "/v1/completions", **body)
        found: dict[str, float] = answer["choices"][0]["logprobs"]["top_logprobs"][0]
        return found

    plain, sharp = await top(1.0), await top(0.5)

    first, second = sorted(plain, key=plain.__getitem__, reverse=True)[:2]
    assert sharp[first] - sharp[second] == pytest.approx(2 * (plain[first] - plain[second]), abs=1e-3)


async def test_temperature_zero_takes_the_most_probable_token(
    engine_url: str, http: aiohttp.ClientSession
) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine))

    _, answer = await _post(http, "/v1/completions", prompt=ids, max_tokens=8, logprobs=2, temperature=0)

    logprobs = answer["choices"][0]["logprobs"]
    for value, best in zip(logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True):
        assert value == pytest.approx(max(best.values()), abs=1e-6)


async def test_a_stop_token_ends_the_answer_and_is_part_of_it(
    engine_url: str, http: aiohttp.ClientSession
) -> None:
    async with EngineClient(engine_url) as engine:
        prompt = await _ids(engine)
        full = await engine.complete_tokens(
            model="pocket", prompt_ids=prompt, max_tokens=24, temperature=0.0, seed=0
        )
        stop = full.token_ids[3]
        cut = await engine.complete_tokens(
            model="pocket", prompt_ids=prompt, max_tokens=24, temperature=0.0, seed=0, stop_token_ids=[stop]
        )

    assert cut.finish_reason == "stop"
    assert cut.token_ids == full.token_ids[: full.token_ids.index(stop) + 1]


async def test_a_stop_text_is_cut_off(engine_url: str, http: aiohttp.ClientSession) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine, "Write f(x): 3 times x plus 4"))
    _, full = await _post(http, "/v1/completions", prompt=ids, max_tokens=24, temperature=0)
    text = full["choices"][0]["text"]

    _, cut = await _post(http, "/v1/completions", prompt=ids, max_tokens=24, temperature=0, stop=["("])

    assert cut["choices"][0]["text"] == text[: text.index("(")]
    assert cut["choices"][0]["finish_reason"] == "stop"
    assert cut["choices"][0]["stop_reason"] == "("


async def test_max_tokens_ends_with_length(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=await _ids(engine), max_tokens=3, temperature=0.0, seed=0
        )

    assert (done.finish_reason, len(done.token_ids)) == ("length", 3)


async def test_n_gives_choices_that_differ(engine_url: str, http: aiohttp.ClientSession) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine))

    _, answer = await _post(http, "/v1/completions", prompt=ids, max_tokens=20, n=6, temperature=1.0, seed=3)

    assert sorted(choice["index"] for choice in answer["choices"]) == list(range(6))
    assert len({choice["text"] for choice in answer["choices"]}) > 1


async def test_a_streamed_completion_adds_up_to_the_whole(
    engine_url: str, http: aiohttp.ClientSession
) -> None:
    async with EngineClient(engine_url) as engine:
        ids = list(await _ids(engine))
    body: dict[str, Any] = {
        "prompt": ids,
        "max_tokens": 24,
        "temperature": 1.0,
        "seed": 11,
        "return_token_ids": True,
    }

    _, whole = await _post(http, "/v1/completions", **body)
    events = await _events(http, "/v1/completions", **body, stream_options={"include_usage": True})

    choices = [event["choices"][0] for event in events if event["choices"]]
    assert "".join(choice["text"] for choice in choices) == whole["choices"][0]["text"]
    assert [token for choice in choices for token in choice["token_ids"]] == whole["choices"][0]["token_ids"]
    assert choices[-1]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


async def test_a_streamed_chat_adds_up_to_the_whole(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        plain = await engine.chat(model="pocket", messages=MESSAGES, max_tokens=32, stream=False)
        streamed = await engine.chat(model="pocket", messages=MESSAGES, max_tokens=32)

    assert streamed.text == plain.text
    assert plain.text
    assert (streamed.finish_reason, plain.finish_reason) == ("stop", "stop")
    assert (streamed.prompt_tokens, streamed.completion_tokens) == (
        plain.prompt_tokens,
        plain.completion_tokens,
    )
    assert streamed.ttft_ms is not None
    assert streamed.ttft_ms <= streamed.latency_ms


async def test_chat_is_the_completion_of_the_templated_prompt(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        chat = await engine.chat(model="pocket", messages=MESSAGES, max_tokens=32)
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=await _ids(engine), max_tokens=32, temperature=0.0, seed=0
        )

    assert chat.text == done.text
    assert chat.completion_tokens == done.completion_tokens


async def test_chat_reports_logprobs_of_each_token(http: aiohttp.ClientSession) -> None:
    body = {"messages": MESSAGES, "max_tokens": 6, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    _, answer = await _post(http, "/v1/chat/completions", **body)

    content = answer["choices"][0]["logprobs"]["content"]
    assert len(content) == answer["usage"]["completion_tokens"]
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) >= 2 for entry in content)


async def test_tools_are_part_of_the_prompt(engine_url: str) -> None:
    task = generate("tool_call", seed=2, count=1)[0]
    messages = [{"role": "user", "content": str(task.messages[0].content)}]
    async with EngineClient(engine_url) as engine:
        bare = await engine.tokenize(model="pocket", messages=messages)
        offered = await engine.tokenize(model="pocket", messages=messages, tools=task.tools)
        answer = await engine.chat(model="pocket", messages=messages, tools=task.tools, max_tokens=40)

    assert len(offered) > len(bare)
    assert answer.prompt_tokens == len(offered)
    assert answer.text.startswith("{")


async def test_what_was_sampled_is_a_prefix_of_the_next_prompt(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        prompt = await _ids(engine)
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=prompt, max_tokens=48, temperature=0.0, seed=0
        )
        history = [
            *MESSAGES,
            {"role": "assistant", "content": done.text},
            {"role": "user", "content": "Again"},
        ]
        next_prompt = await engine.tokenize(model="pocket", messages=history)

    held = (*prompt, *done.token_ids)
    assert next_prompt[: len(held)] == held


async def test_a_prompt_without_generation_prompt_is_shorter(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        asking = await engine.tokenize(model="pocket", messages=MESSAGES)
        closed = await engine.tokenize(model="pocket", messages=MESSAGES, add_generation_prompt=False)

    assert asking[: len(closed)] == closed
    assert len(asking) == len(closed) + 1


async def test_bos_stands_once_at_the_start(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        ids = await _ids(engine)

    assert ids[0] == 1
    assert ids.count(1) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/completions", {"model": "nobody", "prompt": "a"}, 404),
        ("/v1/chat/completions", {"model": "nobody", "messages": MESSAGES}, 404),
        ("/v1/completions", {"prompt": [7] * 600, "max_tokens": 4}, 400),
        ("/v1/completions", {"prompt": [5000], "max_tokens": 4}, 400),
        ("/v1/completions", {"prompt": "a", "temperature": -1}, 400),
        ("/v1/completions", {"prompt": "a", "max_tokens": 0}, 400),
        ("/v1/completions", {"max_tokens": 4}, 400),
        ("/v1/chat/completions", {"messages": "hello"}, 400),
        ("/v1/unload_lora_adapter", {"lora_name": "nobody"}, 404),
        ("/v1/load_lora_adapter", {"lora_name": "gone", "lora_path": "/nowhere/at/all"}, 404),
    ],
)
async def test_a_refusal_has_the_right_status_and_shape(
    http: aiohttp.ClientSession, path: str, body: dict[str, Any], status: int
) -> None:
    found, answer = await _post(http, path, **body)

    assert found == status
    assert answer["error"]["code"] == status
    assert answer["error"]["message"]
    assert answer["error"]["type"]


async def test_a_body_that_is_not_json_is_refused(http: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json"}
    async with http.post("/v1/completions", data=b'{"model": ', headers=headers) as response:
        answer = await response.json()

    assert response.status == 400
    assert answer["error"]["code"] == 400


async def test_an_adapter_answers_under_its_name_until_it_is_unloaded(
    engine_url: str, http: aiohttp.ClientSession, make_adapter: Callable[[int], Path]
) -> None:
    async with EngineClient(engine_url) as engine:
        prompt = await _ids(engine)

        async def greedy(model: str) -> tuple[int, ...]:
            done = await engine.complete_tokens(
                model=model, prompt_ids=prompt, max_tokens=16, temperature=0.0, seed=0
            )
            assert done.model == model
            return done.token_ids

        before = await greedy("pocket")
        await engine.load_adapter(name="run-v1-a1", path=str(make_adapter(1)))
        names = await engine.models()
        async with http.get("/v1/models") as response:
            cards = {card["id"]: card for card in (await response.json())["data"]}
        adapted, after = await greedy("run-v1-a1"), await greedy("pocket")
        await engine.unload_adapter(name="run-v1-a1")
        with pytest.raises(EngineError) as refused:
            await greedy("run-v1-a1")

    assert names == ("pocket", "run-v1-a1")
    assert cards["run-v1-a1"]["parent"] == "pocket"
    assert after == before != adapted
    assert (refused.value.status, refused.value.retryable) == (404, False)


async def test_adapters_in_one_batch_do_not_mix(engine_url: str, make_adapter: Callable[[int], Path]) -> None:
    names = ("pocket", "mix-v2-a1", "mix-v3-a1")
    async with EngineClient(engine_url) as engine:
        for name in names[1:]:
            await engine.load_adapter(name=name, path=str(make_adapter(int(name[5]))))
        prompt = await _ids(engine)

        async def greedy(model: str) -> tuple[int, ...]:
            done = await engine.complete_tokens(
                model=model, prompt_ids=prompt, max_tokens=12, temperature=0.0, seed=0
            )
            return done.token_ids

        alone = [await greedy(name) for name in names]
        together = await asyncio.gather(*(greedy(name) for name in names * 4))
        for name in names[1:]:
            await engine.unload_adapter(name=name)

    assert together == alone * 4
    assert len(set(alone)) == 3


async def test_a_loaded_name_is_not_loaded_again(
    engine_url: str, make_adapter: Callable[[int], Path]
) -> None:
    path = str(make_adapter(4))
    async with EngineClient(engine_url) as engine:
        await engine.load_adapter(name="twice-v1-a1", path=path)
        with pytest.raises(EngineError) as refused:
            await engine.load_adapter(name="twice-v1-a1", path=path)
        await engine.unload_adapter(name="twice-v1-a1")

    assert (refused.value.status, refused.value.retryable) == (400, False)


async def test_requests_of_lower_rank_are_served_too(engine_url: str) -> None:
    async with EngineClient(engine_url) as engine:
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=await _ids(engine), max_tokens=4, temperature=0.0, seed=0, priority=10
        )

    assert done.completion_tokens == 4


async def test_metrics_count_generated_tokens(engine_url: str, http: aiohttp.ClientSession) -> None:
    async def total() -> float:
        async with http.get("/metrics") as response:
            text = await response.text()
        line = next(line for line in text.splitlines() if line.startswith("vllm:generation_tokens_total{"))
        return float(line.rsplit(" ", 1)[1])

    before = await total()
    async with EngineClient(engine_url) as engine:
        await engine.complete_tokens(
            model="pocket", prompt_ids=await _ids(engine), max_tokens=5, temperature=0.0, seed=0
        )

    assert await total() - before == 5


async def test_a_client_that_leaves_frees_its_place(engine_url: str, http: aiohttp.ClientSession) -> None:
    async def running() -> float:
        async with http.get("/metrics") as response:
            text = await response.text()
        line = next(line for line in text.splitlines() if line.startswith("vllm:num_requests_running{"))
        return float(line.rsplit(" ", 1)[1])

    body = {
        "model": "pocket",
        "prompt": [1, 4, 50, 60],
        "max_tokens": 500,
        "temperature": 2.0,
        "stream": True,
    }
    body |= {"n": 8, "seed": 1}
    async with http.post("/v1/completions", json=body) as response:
        await response.content.readline()
    async with asyncio.timeout(GUARD_S):
        while await running():
            await asyncio.sleep(0.05)
