"""What only the pocket server promises."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.waiting import GUARD_S
from tests.workers.engine.conftest import ROOT, WEIGHTS
from workers.engine.client import EngineClient, EngineError
from workers.engine.pocket import Pocket, PocketSettings

PROMPT = "<|bos|><|user|>Write f(x): 3 times x plus 4<|end|><|assistant|>"


@pytest.fixture
async def pocket() -> AsyncIterator[Pocket]:
    pocket = Pocket(PocketSettings(model=WEIGHTS, speculative=True, slots=8))
    await pocket.start()
    yield pocket
    await pocket.stop()


async def _complete(url: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/completions", json={"prompt": PROMPT} | body) as response,
    ):
        return response.status, await response.json()


@pytest.mark.parametrize(
    "option", [{"top_k": 5}, {"presence_penalty": 0.5}, {"response_format": {"type": "json_object"}}]
)
async def test_an_option_that_would_change_the_answer_is_refused_by_name(
    pocket: Pocket, option: dict[str, Any]
) -> None:
    status, answer = await _complete(pocket.url, **option)

    assert status == 400
    assert next(iter(option)) in answer["error"]["message"]


async def test_an_option_at_its_neutral_value_is_accepted(pocket: Pocket) -> None:
    status, _ = await _complete(pocket.url, top_k=-1, presence_penalty=0, logit_bias=None, max_tokens=2)

    assert status == 200


async def test_a_name_is_not_reused_after_it_was_unloaded(
    pocket: Pocket, make_adapter: Callable[[int], Path]
) -> None:
    path = str(make_adapter(7))
    async with EngineClient(pocket.url) as engine:
        await engine.load_adapter(name="run-v1-a1", path=path)
        await engine.unload_adapter(name="run-v1-a1")
        with pytest.raises(EngineError) as refused:
            await engine.load_adapter(name="run-v1-a1", path=path)

    assert refused.value.status == 400


async def test_drafts_are_counted(pocket: Pocket) -> None:
    for _ in range(2):
        await _complete(pocket.url, temperature=0, max_tokens=24)

    counters = pocket.engine.batcher.counters
    assert counters.drafts > 0
    assert 0 < counters.accepted_tokens <= counters.draft_tokens


async def test_health_answers_while_the_model_computes(
    pocket: Pocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing, go_on = threading.Event(), threading.Event()
    step = pocket.engine.batcher.step

    def held_up() -> Any:
        computing.set()
        go_on.wait(60)
        return step()

    monkeypatch.setattr(pocket.engine.batcher, "step", held_up)
    busy = asyncio.create_task(_complete(pocket.url))
    await asyncio.to_thread(computing.wait, 60)

    async with EngineClient(pocket.url) as engine:
        healthy = await engine.health()
    still_busy = not busy.done()
    go_on.set()
    answer = await busy

    assert healthy
    assert still_busy
    assert answer[0] == 200


async def test_a_failed_computing_thread_is_reported_and_not_hidden(
    pocket: Pocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(pocket.engine.batcher, "step", fail)

    first, second = await _complete(pocket.url), await _complete(pocket.url)
    async with EngineClient(pocket.url) as engine:
        healthy = await engine.health()

    assert (first[0], second[0], healthy) == (503, 503, False)
    assert pocket.failed.is_set()


def test_the_command_serves_until_it_is_told_to_stop(make_adapter: Callable[[int], Path]) -> None:
    folder = make_adapter(8)
    command = [sys.executable, "-m", "workers.engine.pocket", "--model", str(WEIGHTS), "--port", "0"]
    command += ["--served-model-name", "small", "--adapter-dir", str(folder.parent)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]

            async def names() -> tuple[str, ...]:
                async with EngineClient(url) as engine:
                    return await engine.models()

            served = asyncio.run(names())
            server.send_signal(signal.SIGTERM)
            code = server.wait(GUARD_S)
        finally:
            server.kill()

    assert served == ("small", folder.name)
    assert code == 0
