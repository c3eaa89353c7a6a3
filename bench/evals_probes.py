"""Silent upgrades on the pocket engine: how often a probe sees one, and how often it sees one that is not.

    python -m bench.evals_probes

The engine computes in half precision (bfloat16) and serves other clients at the same time, so that a
request's log-probabilities depend on what it was batched with, as on a GPU; nothing is added by hand. Load
changes every few rounds, from none to more than the engine can batch. Rounds, references and verdicts are
the product's own, over HTTP.

Power: an adapter exchanged for another run of the same training, a base trained on for 12 steps, the base
with eight-bit weights, each 59 rounds against references taken before, some idle, some under load. False
alarms: recorded rounds of the unchanged model, drawn into quarters of 90 days at four rounds a day.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from apps.evals.asking import First, Listener  # noqa: E402  (needs the settings above)
from apps.evals.probe_prompts import DEFAULT_PROMPTS, SHORT_PROMPTS  # noqa: E402
from apps.evals.probe_sampling import take_reference, take_round  # noqa: E402
from apps.evals.volley import Volley  # noqa: E402
from bench import probe_models  # noqa: E402
from bench.harness import Line, report  # noqa: E402
from domain.drift import Round, Sample, read_round  # noqa: E402
from domain.drift.false_alarms import Quarter, quarter_of  # noqa: E402

NAME = "watched"
LOADS = (0, 2, 6, 16)  # other clients at the same time, in turn
BLOCK = 3  # rounds under one load
ROUNDS, CALM_ROUNDS, REFERENCES = 59, 72, 6
BLIND_ROUNDS, BLIND_CALM, BLIND_REFERENCES = 30, 60, 2
QUARTERS = 40
Reference = Mapping[str, Any]


class Recorded(NamedTuple):
    """``calm`` are rounds of the unchanged model, ``changed`` those after each change, by its name."""

    references: list[Reference]
    calm: list[Round]
    changed: dict[str, list[Round]]


class Blind(Listener):
    """An endpoint that shows no log-probabilities."""

    def first_token(self, prompt: str, *, temperature: float = 0.0, top: int = 0) -> First:
        return super().first_token(prompt, temperature=temperature)._replace(sample=None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    return report("evals_probes", lines(dtype=parser.parse_args().dtype))


def lines(*, dtype: str = "bfloat16") -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="flywheel-bench-") as folder, ExitStack() as stack:
        urls = {
            name: stack.enter_context(_server(model, adapters, dtype))
            for name, (model, adapters) in _models(Path(folder)).items()
        }
        jitter = _jitter(urls["unchanged"])
        shown = _record(urls, Listener, REFERENCES, CALM_ROUNDS, ROUNDS)
        hidden = _record(urls, Blind, BLIND_REFERENCES, BLIND_CALM, BLIND_ROUNDS)
    return [
        Line("jitter of a log-probability, mean", jitter[0], "nats", f"alone against a batch, {dtype}"),
        Line("jitter of a log-probability, most", jitter[1], "nats", f"alone against a batch, {dtype}"),
        *_power(shown, "", bar=True),
        *_alarms(shown, ""),
        *_power(hidden, ", no log-probabilities", bar=False),
        *_alarms(hidden, ", no log-probabilities"),
    ]


def _power(found: Recorded, suffix: str, *, bar: bool) -> list[Line]:
    lines = []
    for name, rounds in found.changed.items():
        flagged = sum(
            _verdict(found.references[index % len(found.references)], one, index) == "flagged"
            for index, one in enumerate(rounds)
        )
        wanted = float(len(rounds)) if bar else None
        lines.append(Line(f"{name} flagged{suffix}", flagged, f"of {len(rounds)}", "one round", bar=wanted))
    return lines


def _verdict(reference: Reference, found: Round, seed: int) -> str:
    return read_round(reference, found, {}, np.random.default_rng(seed)).verdict


def _alarms(found: Recorded, suffix: str) -> list[Line]:
    rng = np.random.default_rng(7)
    quarters: list[Quarter] = []
    for _ in range(QUARTERS):
        quarters.append(quarter_of(found.references, found.calm, rng, block=BLOCK))
    flags, rounds = sum(q.flags for q in quarters), sum(q.rounds for q in quarters)
    alarms = [q.alarms for q in quarters]
    recorded = f"{len(found.calm)} recorded rounds"
    return [
        Line(f"flags without a change{suffix}", 1000 * flags / rounds, "of 1,000", recorded),
        Line(
            f"alarms in 90 endpoint-days{suffix}",
            float(np.mean(alarms)),
            "mean",
            f"{QUARTERS} simulated quarters",
            bar=1.0,
            direction="at_most",
        ),
        Line(f"most alarms in one quarter{suffix}", float(max(alarms)), "alarms", recorded),
    ]


def _record(
    urls: Mapping[str, str], kind: type[Listener], references: int, calm: int, changed: int
) -> Recorded:
    with kind.at(urls["unchanged"], NAME) as model:
        taken: list[Reference] = []
        for index in range(references):
            with _load(urls["unchanged"], LOADS[index % len(LOADS)]):
                tracked = taken[0]["logprobs"]["prompts"] if taken and taken[0]["logprobs"] else ()
                one = take_reference(model, DEFAULT_PROMPTS, Volley(bound_s=300), tracked=tracked)
            if one.reference is None:
                raise RuntimeError(f"no reference: {one.problem}")
            border = taken[0].get("border") if taken else None
            taken.append({**one.reference, "border": border} if border else one.reference)
        unchanged = _rounds(model, urls["unchanged"], taken[0], calm)
    after = {}
    for name in (name for name in urls if name != "unchanged"):
        with kind.at(urls[name], NAME) as model:
            after[name] = _rounds(model, urls[name], taken[0], changed)
    return Recorded(taken, unchanged, after)


def _rounds(model: Listener, url: str, reference: Reference, count: int) -> list[Round]:
    found: list[Round] = []
    while len(found) < count:
        with _load(url, LOADS[len(found) // BLOCK % len(LOADS)]):
            for _ in range(min(BLOCK, count - len(found))):
                volley = Volley(bound_s=120)
                found.append(take_round(model, reference, volley))
                if volley.problem:
                    raise RuntimeError(volley.problem)
    return found


def _models(folder: Path) -> dict[str, tuple[Path, Path]]:
    """By name of the change: the folder of the model, and of the adapters served with it."""
    first, second = folder / "first", folder / "second"
    probe_models.adapter(first / NAME, seed=1)
    probe_models.adapter(second / NAME, seed=2)
    return {
        "unchanged": (probe_models.BASE, first),
        "adapter swap": (probe_models.BASE, second),
        "base swap": (probe_models.trained_on(folder / "base"), first),
        "int8 weights": (probe_models.int8(folder / "int8"), first),
    }


@contextmanager
def _server(model: Path, adapters: Path, dtype: str) -> Iterator[str]:
    command = [sys.executable, "-m", "workers.engine.pocket", "--model", str(model), "--port", "0"]
    command += ["--adapter-dir", str(adapters), "--dtype", dtype]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()


@contextmanager
def _load(url: str, clients: int) -> Iterator[None]:
    """Other clients that keep asking for answers of many lengths, from a thread of their own."""
    if not clients:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_crowd(url, clients, ended)))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _crowd(url: str, clients: int, ended: threading.Event) -> None:
    async def one(session: aiohttp.ClientSession, draw: random.Random) -> None:
        while not ended.is_set():
            body = {
                "model": NAME,
                "messages": [{"role": "user", "content": draw.choice(DEFAULT_PROMPTS)}],
                "max_tokens": draw.randint(2, 32),
                "temperature": 1,
            }
            async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                await answer.read()
            await asyncio.sleep(draw.random() * 0.1)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session, random.Random(index)) for index in range(clients)))


def _jitter(url: str) -> tuple[float, float]:
    """Mean and most of |log-probability in a batch − the same alone|, over prompts and tokens."""
    prompts = [*DEFAULT_PROMPTS, *SHORT_PROMPTS[:10]]
    with Listener.at(url, NAME) as model:
        alone = [_sample(model, prompt) for prompt in prompts]
        found: list[float] = []
        for clients in LOADS[1:]:
            with _load(url, clients):
                for prompt, before in zip(prompts, alone, strict=True):
                    now = _sample(model, prompt)
                    found += [abs(now[token] - value) for token, value in before.items() if token in now]
    return float(np.mean(found)), float(np.max(found))


def _sample(model: Listener, prompt: str) -> Sample:
    sample = model.first_token(prompt, top=20).sample
    assert sample is not None
    return sample


if __name__ == "__main__":
    sys.exit(main())
