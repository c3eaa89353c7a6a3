"""The Docker part of ``bench.sandbox``: a step over the attached stream against ``docker exec``, and
the embedded backend against ``docker run``. Without an engine it measures nothing and says so."""

import asyncio
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from bench.harness import Line
from workers.sandbox.docker.settings import docker_settings
from workers.sandbox.protocol import SandboxSpec

PASS = ["python", "-c", "pass"]
ROUNDS = 12
RUNS = 24
_THOUGHT_S = 0.1  # a model thinks between its steps, mostly longer


async def docker_lines(in_flight: int, embedded_rate: float) -> list[Line]:
    """``embedded_rate``: programs a second of the embedded backend, measured in this run."""
    from workers.sandbox.docker.backend import DockerBackend  # the SDK is imported where it is used

    backend = DockerBackend(docker_settings(os.environ))
    capabilities = await asyncio.to_thread(backend.probe)
    client = shutil.which("docker")
    if not capabilities.available or client is None:
        print(f"Docker is left out: {capabilities.reason or 'there is no docker command.'}")
        return []
    sandbox = await backend.create(SandboxSpec())
    try:
        container = await asyncio.to_thread(_own_container)
        image, python = container.image.tags[0], container.attrs["Path"]
        interpreter = [container.id, python, "-s", "-S", "-P", "-B", "-c", "pass"]
        outside = [client, "exec", "-e", "LD_BIND_NOW=", *interpreter]
        steps, execs = [], []
        for _ in range(ROUNDS):
            await asyncio.sleep(_THOUGHT_S)
            began = time.perf_counter()
            result = await sandbox.exec(PASS)
            steps.append(time.perf_counter() - began)
            assert result.status == "ok", result
            execs.append(await _command_s(outside))
    finally:
        await sandbox.close()
    fresh = []
    for _ in range(ROUNDS // 2):
        began = time.perf_counter()
        sandbox = await backend.create(SandboxSpec())
        await sandbox.exec(PASS)
        await sandbox.close()
        fresh.append(time.perf_counter() - began)
    run = [
        client,
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        python,
        image,
        "-I",
        "-S",
        "-c",
        "pass",
    ]
    rate = await _rate(run, in_flight)
    step, exec_s = statistics.median(steps), statistics.median(execs)
    return [
        Line("docker: a step over attach", step * 1e3, "ms"),
        Line("docker: the same by docker exec", exec_s * 1e3, "ms"),
        Line("docker exec ÷ attach", exec_s / step, "x", bar=15),
        Line("docker: fresh sandbox on demand", statistics.median(fresh) * 1e3, "ms", "made, run, ended"),
        Line("throughput, docker run", rate, "/s", f"{in_flight} in flight"),
        Line("throughput ÷ docker run", embedded_rate / rate, "x", "embedded backend", bar=30),
    ]


def _own_container() -> Any:
    import docker

    client = docker.from_env()
    found = client.containers.list(filters={"label": "flywheel.sandbox=1"})
    return next(each for each in found if f"/{os.getpid()}/" in each.labels["flywheel.process"])


async def _command_s(command: Sequence[str]) -> float:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
    assert await process.wait() == 0, command
    return time.perf_counter() - began


async def _rate(command: Sequence[str], in_flight: int) -> float:
    left = iter(range(RUNS))

    async def work() -> None:
        for _ in left:
            await _command_s(command)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return RUNS / (time.perf_counter() - began)
