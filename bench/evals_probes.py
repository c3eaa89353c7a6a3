"""Silent upgrades on the pocket engine: how often a probe sees one, and how often it sees one that is not.

    python -m bench.evals_probes

The engine computes in half precision (bfloat16) and serves other clients at the same time, so that a
request's log-probabilities depend on what it was batched with, as on a GPU; nothing is added by hand. Load
changes every few rounds. Rounds, references and verdicts are the product's own, over HTTP.

Four models are recorded: one, and the same after an adapter exchanged for another run of the same
training, a base trained on for 12 steps, and a base with eight-bit weights. A round asks answers,
log-probabilities and border inputs, and is judged twice: as of an endpoint that shows log-probabilities,
and as of one that does not.

Power: rounds of a changed model against references of the unchanged one. False alarms: rounds of every
model against its own references. The floor of log-probabilities is held against calibration rounds of one
model; false alarms are counted in other rounds, of four models, under other load.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from apps.evals.asking import First, Listener  # noqa: E402  (needs the settings above)
from apps.evals.probe_border import BORDER_REQUESTS, measured, sizes_for  # noqa: E402
from apps.evals.probe_prompts import DEFAULT_PROMPTS, SHORT_PROMPTS  # noqa: E402
from apps.evals.probe_sampling import take_reference, take_round  # noqa: E402
from apps.evals.volley import PARALLEL, Volley  # noqa: E402
from bench import probe_models  # noqa: E402
from bench.harness import Line, report  # noqa: E402
from domain.drift import Round, Sample, read_round  # noqa: E402
from domain.drift.false_alarms import quarter_of, upper_rate  # noqa: E402
from domain.drift.logprobs import FLOOR  # noqa: E402

NAME = "watched"
REFERENCE_LOADS = (0, 16, 4)  # other clients while a reference is taken
CALIBRATION_LOADS, LOADS = (0, 2, 6, 16), (1, 3, 6, 10)  # while rounds are asked, in turn
BLOCK = 3  # rounds under one load
ROUNDS, CALIBRATION = 59, 24
QUARTERS = 10  # of each model
HIDDEN = ", no log-probabilities"
Reference = Mapping[str, Any]


class Plan(NamedTuple):
    """Prompts that every reference and round asks, as the product chose them."""

    tracked: list[str]
    border: list[str]
    temperature: float


class Recorded(NamedTuple):
    """One model. References have log-probabilities and border inputs."""

    references: list[Reference]
    calibration: list[Round]
    rounds: list[Round]


class Blind(Listener):
    """An endpoint that shows no log-probabilities."""

    def first_token(self, prompt: str, *, temperature: float = 0.0, top: int = 0) -> First:
        return super().first_token(prompt, temperature=temperature)._replace(sample=None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    return report("evals_probes", lines(dtype=parser.parse_args().dtype))


def lines(*, dtype: str = "bfloat16") -> list[Line]:
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="flywheel-bench-") as folder,
        ExitStack() as stack,
        ProcessPoolExecutor(2, mp_context=spawn) as pool,
    ):
        urls = {
            name: stack.enter_context(_server(model, adapters, dtype))
            for name, (model, adapters) in _models(Path(folder)).items()
        }
        jitter = _jitter(urls["unchanged"])
        plan = _plan(urls["unchanged"])
        futures = {name: pool.submit(_recorded, url, plan, name) for name, url in urls.items()}
        found = {name: future.result() for name, future in futures.items()}
        calm = {shown: list(pool.map(_calm, found.values(), [shown] * len(found))) for shown in (True, False)}
    return [
        Line("jitter of a log-probability, mean", jitter[0], "nats", f"alone against a batch, {dtype}"),
        Line("jitter of a log-probability, most", jitter[1], "nats", f"alone against a batch, {dtype}"),
        _floor(found["unchanged"]),
        *_power(found, shown=True),
        *_false_alarms(calm[True], ""),
        *_power(found, shown=False),
        *_false_alarms(calm[False], HIDDEN),
    ]


def _floor(unchanged: Recorded) -> Line:
    """The largest shift of calibration rounds, which the product's floor must cover."""
    shifts = [
        signal.value
        for reference in unchanged.references
        for one in unchanged.calibration
        for signal in _read(reference, one, shown=True).signals
        if signal.name == "logprobs" and signal.value is not None
    ]
    peer = f"{CALIBRATION} calibration rounds × {len(unchanged.references)} references"
    return Line("largest shift without a change", max(shifts), "nats", peer, FLOOR, "at_most")


def _power(found: Mapping[str, Recorded], *, shown: bool) -> list[Line]:
    """Rounds that every reference flags; with log-probabilities all of them must be."""
    references = found["unchanged"].references
    lines = []
    for name in (name for name in found if name != "unchanged"):
        rounds = found[name].rounds
        flags = [
            [_read(one, each, shown=shown).verdict == "flagged" for one in references] for each in rounds
        ]
        unit, bar = f"of {len(rounds)}", float(len(rounds)) if shown else None
        lines.append(
            Line(
                f"{name} flagged{'' if shown else HIDDEN}",
                sum(map(all, flags)),
                unit,
                "by every reference",
                bar,
            )
        )
        if not shown:
            share = float(np.mean(flags)) * len(rounds)
            lines.append(Line(f"{name} flagged{HIDDEN}, mean", share, unit, "of references"))
    return lines


class Calm(NamedTuple):
    """Rounds of one unchanged model: those that any of its references flags, and what quarters came to."""

    flagged: int
    rounds: int
    alarms: list[int]
    nearest: float  # of shift or −log10 p, the largest share of its threshold


def _calm(found: Recorded, shown: bool) -> Calm:
    readings = [[_read(one, each, shown=shown) for one in found.references] for each in found.rounds]
    flagged = sum(any(reading.verdict == "flagged" for reading in row) for row in readings)
    name = "logprobs" if shown else "border"
    shares = [
        (signal.value or 0.0) / (signal.threshold or 1.0)
        for row in readings
        for reading in row
        for signal in reading.signals
        if signal.name == name
    ]
    rng = np.random.default_rng(7)
    as_seen = [_seen(one, shown=shown) for one in found.references]
    quarters = [quarter_of(as_seen, found.rounds, rng, block=BLOCK) for _ in range(QUARTERS)]
    return Calm(flagged, len(found.rounds), [quarter.alarms for quarter in quarters], max(shares))


def _false_alarms(calm: Sequence[Calm], suffix: str) -> list[Line]:
    flagged, rounds = sum(one.flagged for one in calm), sum(one.rounds for one in calm)
    alarms = [count for one in calm for count in one.alarms]
    loud = sum(count > 0 for count in alarms)
    recorded = f"{rounds} rounds of {len(calm)} unchanged models"
    quarters = f"{len(alarms)} simulated quarters"
    return [
        Line(f"rounds flagged without a change{suffix}", flagged, f"of {rounds}", "by any reference"),
        Line(f"… at most, 95 %{suffix}", 100 * upper_rate(flagged, rounds), "%", recorded),
        Line(f"nearest to a flag{suffix}", max(one.nearest for one in calm), "of threshold", recorded),
        Line(f"alarms in 90 endpoint-days{suffix}", float(np.mean(alarms)), "mean", quarters, 1.0, "at_most"),
        Line(f"quarters with an alarm{suffix}", loud, f"of {len(alarms)}", "drawn from these rounds"),
        Line(f"… at most, 95 %{suffix} (quarters)", 100 * upper_rate(loud, len(alarms)), "%", quarters),
    ]


def _read(reference: Reference, found: Round, *, shown: bool) -> Any:
    return read_round(_seen(reference, shown=shown), found, {}, np.random.default_rng(7))


def _seen(reference: Reference, *, shown: bool) -> Reference:
    return {**reference, ("border" if shown else "logprobs"): None}


def _plan(url: str) -> Plan:
    with Listener.at(url, NAME) as model, Blind.at(url, NAME) as blind, _load(url, 2):
        shown = take_reference(model, DEFAULT_PROMPTS, Volley(bound_s=300)).reference
        hidden = take_reference(blind, DEFAULT_PROMPTS, Volley(bound_s=300)).reference
    if shown is None or hidden is None or not hidden["border"]:
        raise RuntimeError("no complete reference")
    border = hidden["border"]
    return Plan(shown["logprobs"]["prompts"], border["prompts"], border["temperature"])


def _recorded(url: str, plan: Plan, name: str) -> Recorded:
    with Listener.at(url, NAME) as model:
        references = []
        for clients in REFERENCE_LOADS if name == "unchanged" else REFERENCE_LOADS[:2]:
            with _load(url, clients):
                references.append(_reference(model, plan))
        calibration = CALIBRATION if name == "unchanged" else 0
        return Recorded(
            references,
            _rounds(model, url, references[0], calibration, CALIBRATION_LOADS),
            _rounds(model, url, references[0], ROUNDS, LOADS, seed=100),
        )


def _reference(model: Listener, plan: Plan) -> Reference:
    volley = Volley(bound_s=300)
    one = take_reference(model, DEFAULT_PROMPTS, volley, tracked=plan.tracked)
    sizes = sizes_for(1_000_000, BORDER_REQUESTS, PARALLEL)
    assert sizes is not None
    border = measured(model, plan.border, plan.temperature, sizes, volley)
    if one.reference is None or border is None:
        raise RuntimeError(f"no reference: {volley.problem}")
    assert border["prompts"] == plan.border
    return {**one.reference, "border": border}


def _rounds(
    model: Listener, url: str, reference: Reference, count: int, loads: Sequence[int], *, seed: int = 0
) -> list[Round]:
    found: list[Round] = []
    while len(found) < count:
        with _load(url, loads[len(found) // BLOCK % len(loads)], seed=seed + len(found)):
            for _ in range(min(BLOCK, count - len(found))):
                volley = Volley(bound_s=120)
                found.append(take_round(model, reference, volley))
                if volley.problem:
                    raise RuntimeError(volley.problem)
    return found


def _models(folder: Path) -> dict[str, tuple[Path, Path]]:
    """By name of the change: the folder of the model, and of the adapters served with it."""
    first, second = folder / "first", folder / "second"
    with ThreadPoolExecutor(1) as beside:
        base = beside.submit(probe_models.trained_on, folder / "base")
        probe_models.adapter(first / NAME, seed=1)
        probe_models.adapter(second / NAME, seed=2)
    return {
        "unchanged": (probe_models.BASE, first),
        "adapter swap": (probe_models.BASE, second),
        "base swap": (base.result(), first),
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
def _load(url: str, clients: int, *, seed: int = 0) -> Iterator[None]:
    """Other clients that keep asking for answers of many lengths, from a thread of their own."""
    if not clients:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_crowd(url, clients, seed, ended)))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _crowd(url: str, clients: int, seed: int, ended: threading.Event) -> None:
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
            await asyncio.sleep(draw.random() * 0.2)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session, random.Random(seed + index)) for index in range(clients)))


def _jitter(url: str) -> tuple[float, float]:
    """Mean and most of |log-probability in a batch − the same alone|, over prompts and tokens."""
    prompts = [*DEFAULT_PROMPTS, *SHORT_PROMPTS[:10]]
    with Listener.at(url, NAME) as model:
        alone = [_sample(model, prompt) for prompt in prompts]
        found: list[float] = []
        for clients in CALIBRATION_LOADS[1:]:
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
