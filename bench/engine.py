"""The pocket engine over HTTP on one core: batching against one by one, high-speed against standard.

    python -m bench.engine

Speculation is measured on paired prompts, interleaved, one request at a time; what is claimed
is the lower end of a 95 % interval of the mean log ratio.
"""

import argparse
import asyncio
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from scipy.stats import t as student

from bench.harness import Line, report
from packs.starter.tasks import families, generate
from workers.engine.client import EngineClient

CONCURRENT = 64
SINGLE_CORE_TOKENS_S = 1500.0


def main() -> None:
    options = _options()
    with (
        _server(options.model) as plain,
        _server(options.model, "--speculative", "prompt-lookup") as drafting,
    ):
        lines = asyncio.run(_measure(plain, drafting, options.prompts))
    sys.exit(report("engine", lines))


@contextmanager
def _server(model: Path, *options: str) -> Iterator[str]:
    """The URL of a pocket server in a process of its own, as it is run."""
    command = [sys.executable, "-m", "workers.engine.pocket", "--model", str(model), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()


async def _measure(standard: str, fast: str, count: int) -> list[Line]:
    async with EngineClient(standard) as plain, EngineClient(fast) as drafting:
        prompts = await _prompts(plain, count)
        batched = await _tokens_per_s(plain, prompts[:CONCURRENT], together=True)
        single = await _tokens_per_s(plain, prompts[:CONCURRENT], together=False)
        ratios, differing = await _pairs(plain, drafting, prompts)
    drafted = await _counter(fast, "vllm:spec_decode_num_draft_tokens_total")
    accepted = await _counter(fast, "vllm:spec_decode_num_accepted_tokens_total")
    ties = await _counter(fast, "pocket:greedy_ties_total")
    low = _lower(ratios)
    return [
        Line("accepted drafted tokens", accepted / max(drafted, 1), "share"),
        Line(
            "answers that differ beyond ties",
            max(differing - ties, 0),
            "answers",
            bar=0,
            direction="at_most",
        ),
        Line("sequential", single, "tokens/s", "1 request at a time"),
        Line("batched", batched, "tokens/s", f"{CONCURRENT} requests", bar=SINGLE_CORE_TOKENS_S),
        Line("batched ÷ sequential", batched / single, "x", "same requests", bar=3.0),
        Line(
            "high-speed ÷ standard, mean",
            math.exp(statistics.mean(map(math.log, ratios))),
            "x",
            "paired prompts",
        ),
        Line("high-speed ÷ standard, 95 % low", low, "x", "paired prompts", bar=1.1),
    ]


async def _counter(url: str, name: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        text = await response.text()
    return float(next(line for line in text.splitlines() if line.startswith(name + "{")).rsplit(" ", 1)[1])


async def _prompts(engine: EngineClient, count: int) -> list[tuple[int, ...]]:
    names = [family.name for family in families()]
    tasks = [task for name in names for task in generate(name, seed=31, count=-(-count // len(names)))]
    found = []
    for task in tasks:
        messages = [message.model_dump(exclude_none=True) for message in task.messages]
        found.append(await engine.tokenize(model="pocket", messages=messages, tools=task.tools))
    step = len(names)
    return [found[i % step * (len(found) // step) + i // step] for i in range(count)]  # families in turn


async def _tokens_per_s(engine: EngineClient, prompts: Sequence[tuple[int, ...]], *, together: bool) -> float:
    async def one(index: int) -> int:
        done = await engine.complete_tokens(
            model="pocket", prompt_ids=prompts[index], max_tokens=48, temperature=1.0, seed=index
        )
        return done.completion_tokens

    await one(0)
    started = time.perf_counter()
    if together:
        tokens = sum(await asyncio.gather(*(one(index) for index in range(len(prompts)))))
    else:
        tokens = sum([await one(index) for index in range(len(prompts))])
    return tokens / (time.perf_counter() - started)


async def _pairs(
    plain: EngineClient, drafting: EngineClient, prompts: Sequence[tuple[int, ...]]
) -> tuple[list[float], int]:
    """For each prompt standard time ÷ high-speed time, and how many answers differ."""
    ratios, differing = [], 0
    for index, prompt in enumerate(prompts):
        order = (plain, drafting) if index % 2 == 0 else (drafting, plain)
        done = {
            engine: await engine.complete_tokens(
                model="pocket", prompt_ids=prompt, max_tokens=48, temperature=0.0, seed=0
            )
            for engine in order
        }
        ratios.append(done[plain].latency_ms / done[drafting].latency_ms)
        differing += done[plain].token_ids != done[drafting].token_ids
    return ratios, differing


def _lower(ratios: Sequence[float]) -> float:
    logs = [math.log(ratio) for ratio in ratios]
    half = student.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(statistics.mean(logs) - half)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/pocket/weights"))
    parser.add_argument("--prompts", type=int, default=160)
    return parser.parse_args()


if __name__ == "__main__":
    main()
