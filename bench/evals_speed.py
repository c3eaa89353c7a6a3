"""Samples a second of a whole evaluation, against inspect-ai on the same endpoint in the same run.

Ours is what a user gets: the embedded stack (``make run``) with its one evaluation worker, a run started
over the REST API, every answer streamed through the gateway, judged, stored as a row, the run done.
The peer is ``inspect_ai.eval`` up to its written log, 64 connections, no streaming, warmed up. Both ask
``bench.peers.mock_endpoint``, which answers at once. CPU seconds are those of all processes of a side but the
endpoint's: of the whole stack on ours, the idle engines included.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.harness import Line, report
from clients.flywheel import Client
from config.launch import Running, stack
from config.ports import free_ports
from config.processes import members_of

PEER = "inspect-ai 0.3.285"
CONNECTIONS = 64
CASES, SAMPLES = 2000, 2  # no more, so that the version is made in the request
PEER_SAMPLES = 500
ROUNDS = 2
_ROOT = Path("var/bench")


class Took(NamedTuple):
    samples: int
    wall_s: float
    cpu_s: float


def main() -> int:
    return report("evals_speed", lines())


def lines() -> list[Line]:
    ours, theirs = measure()
    mine, peer = _rate(ours), _rate(theirs)
    my_cpu, peer_cpu = _cpu(ours), _cpu(theirs)
    return [
        Line("samples a second, ours", mine, "1/s"),
        Line("samples a second, peer", peer, "1/s", PEER),
        Line("CPU for 1,000 samples, ours", my_cpu, "s", "the whole stack"),
        Line("CPU for 1,000 samples, peer", peer_cpu, "s", PEER),
        Line("evaluation speed", mine / peer, "ours/peer", PEER, bar=10.0),
        Line("CPU a sample", my_cpu / peer_cpu, "ours/peer", PEER, bar=1.0, direction="at_most"),
    ]


def measure(rounds: int = ROUNDS) -> tuple[list[Took], list[Took]]:
    """Ours and the peer's, in turns."""
    python = _peer_python()
    ours, theirs = [], []
    with _endpoint() as url, _stack() as running, Client(running.url, running.bootstrap["api_key"]) as client:
        asked = _prepare(client, url)
        _run(client, running, asked | {"samples": 1})  # connections, imports, prepared statements
        for _ in range(rounds):
            theirs.append(_peer(python, url))
            ours.append(_run(client, running, asked))
    return ours, theirs


def _rate(rounds: list[Took]) -> float:
    return sum(took.samples for took in rounds) / sum(took.wall_s for took in rounds)


def _cpu(rounds: list[Took]) -> float:
    return 1000 * sum(took.cpu_s for took in rounds) / sum(took.samples for took in rounds)


def _prepare(client: Client, url: str) -> dict[str, int]:
    """An endpoint and a suite; what starts a run of it."""
    name = f"mock-{uuid.uuid4().hex[:8]}"
    endpoint = {"name": name, "base_url": url, "model": "mock", "max_concurrency": CONNECTIONS}
    deployment = client.post("/deployments", endpoint)
    suite = client.post("/suites", {"name": f"Speed {name}"})
    tasks = [
        {
            "id": f"q{n}",
            "family": "speed",
            "messages": [
                {"role": "user", "content": f"Question {n}: reply with the answer {n} and nothing else."}
            ],
            "verifier": {"kind": "exact"},
            "reference": str(n),
            "max_tokens": 16,
        }
        for n in range(CASES)
    ]
    version = client.post(f"/suites/{suite['id']}/versions", {"tasks": tasks, "keep_personal_data": True})
    if "number" not in version:
        raise SystemExit(f"the suite is being stored beside the request; make CASES smaller: {version}")
    return {
        "suite_version_id": version["id"],
        "deployment_id": deployment["id"],
        "samples": SAMPLES,
        "batch_size": 250,
        "concurrency": CONNECTIONS,
    }


def _run(client: Client, running: Running, asked: dict[str, int]) -> Took:
    """A run from its start until it is done and its rows are stored; both times are the database's, as
    asking often whether it is done would be measured too."""
    cpu = _stack_cpu_s(running)
    run = client.post("/runs", asked)
    path, deadline = f"/runs/{run['id']}", time.monotonic() + 600
    while (run := client.get(path))["state"] not in ("done", "failed", "cancelled"):
        if time.monotonic() > deadline:
            raise SystemExit(f"the run was not done after ten minutes: {run}")
        time.sleep(1.0)
    cpu_s = _stack_cpu_s(running) - cpu
    began, ended = (datetime.fromisoformat(run[name]) for name in ("created_at", "finished_at"))
    wall_s = (ended - began).total_seconds()
    score, total = run["score"], CASES * asked["samples"]
    if run["state"] != "done" or score["passed"] != total:
        raise SystemExit(f"this run measures nothing: {run['state']}, {score}, {run['error']}")
    return Took(total, wall_s, cpu_s)


def _peer(python: Path, url: str) -> Took:
    script = Path(__file__).parent / "peers" / "inspect_eval.py"
    command = [str(python), str(script), f"{url}/v1", str(PEER_SAMPLES), str(CONNECTIONS)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    told = json.loads(answer.strip().splitlines()[-1])
    if told["samples"] != PEER_SAMPLES or told["accuracy"] != 1.0:
        raise SystemExit(f"the peer did not answer every sample: {told}")
    return Took(told["samples"], told["wall_s"], told["cpu_s"])


def _peer_python() -> Path:
    """The peer's own environment, made once."""
    folder = _ROOT / "inspect-0.3.285"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "inspect-ai==0.3.285", "openai"], check=True)
        ready.touch()
    return python


@contextlib.contextmanager
def _endpoint() -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-m", "bench.peers.mock_endpoint", str(port)])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


@contextlib.contextmanager
def _stack() -> Iterator[Running]:
    """The embedded stack on a folder of its own, empty at the start and gone at the end."""
    port = free_ports()
    if port is None:
        raise SystemExit("no free port for the stack")
    _ROOT.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="evals-speed-", dir=_ROOT) as data,
        stack(port, Path(data)) as running,
    ):
        yield running


def _stack_cpu_s(running: Running) -> float:
    """CPU seconds of everything in the stack's session so far."""
    total = 0.0
    for pid in members_of(running.process.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    os.environ.setdefault("FLYWHEEL_LOG_LEVEL", "WARNING")
    sys.exit(main())
