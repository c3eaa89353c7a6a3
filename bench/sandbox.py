"""The sandbox against what it replaces, in one run on one machine: the claims are ratios.

    python -m bench.sandbox

The floor is a bare interpreter without any isolation (``python -I -S -c pass``). Peers are a cold
``bwrap`` for each program, with the same protections and with namespaces alone, and, where a Docker
engine answers, ``docker run`` and ``docker exec``.
Measurements that are compared take turns, so that a busy machine slows both.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from artifacts import ArtifactStore
from bench.harness import Line, report
from bench.peers.docker_sandbox import docker_lines
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cold import ColdBubblewrapBackend
from workers.sandbox.installation import bwrap_candidates
from workers.sandbox.pool import SandboxPool
from workers.sandbox.protocol import MIB, Limits, Sandbox, SandboxSpec

PASS = ["python", "-c", "pass"]
NUMPY = ["python", "-c", "import numpy; numpy.ones(3).sum()"]
ROUNDS = 40
IN_FLIGHT = 8
MANY = 1000
_THOUGHT_S = 0.1  # a model thinks between its steps, mostly longer
_ENDING_S = 0.01  # what was told to end is gone before the next is timed

Action = Callable[[], Awaitable[object]]


async def measure() -> list[Line]:
    backend = BubblewrapBackend()
    capabilities = await asyncio.to_thread(backend.probe)
    if not capabilities.available:
        raise SystemExit(f"No sandbox can be had here: {capabilities.reason} {capabilities.fix}")
    lines = await _starts(backend)
    lines += await _numpy(backend)
    lines += await _output(backend)
    rate, throughput = await _throughput(backend)
    lines += throughput
    lines += await _workspace(backend)
    lines += await _many(backend)
    return lines + await docker_lines(IN_FLIGHT, rate)


async def _starts(backend: BubblewrapBackend) -> list[Line]:
    spec = SandboxSpec()
    pool = SandboxPool(backend, min_ready=2, max_live=8)

    async def on_demand() -> None:
        result = await backend.run(spec, PASS)
        assert result.status == "ok", result

    async def parked() -> None:
        async with pool.acquire(spec) as sandbox:
            await sandbox.exec(PASS)

    await parked()
    bare_s, demand_s, parked_s, step_s = [], [], [], []
    for _ in range(ROUNDS):
        bare_s.append(await _timed(_bare))
        demand_s.append(await _timed(on_demand))
        await asyncio.sleep(_ENDING_S)
        await _at_rest(pool)
        parked_s.append(await _timed(parked))
        async with pool.acquire(spec) as sandbox:
            await sandbox.exec(PASS)
            await asyncio.sleep(_THOUGHT_S)
            step_s.append(await _timed(lambda: sandbox.exec(PASS)))
    await pool.close()
    bare, demand, ready, step = (statistics.median(times) for times in (bare_s, demand_s, parked_s, step_s))
    return [
        Line("bare interpreter", bare * 1e3, "ms", "python -I -S, not isolated"),
        Line("fresh sandbox on demand", demand * 1e3, "ms", "made, run, told to end"),
        Line("on demand ÷ bare", demand / bare, "x", bar=0.8, direction="at_most"),
        Line("fresh sandbox, parked", ready * 1e3, "ms", "handed out, run"),
        Line("parked ÷ bare", ready / bare, "x", bar=0.4, direction="at_most"),
        Line("one more program in it", step * 1e3, "ms", "a step of a trajectory"),
    ]


async def _numpy(backend: BubblewrapBackend) -> list[Line]:
    spec = SandboxSpec(image="modelling", preimport=("numpy",), limits=Limits(memory_bytes=1024 * MIB))

    async def warm() -> None:
        result = await backend.run(spec, NUMPY)
        assert result.status == "ok", result.stderr.text

    pool = SandboxPool(backend, min_ready=2, max_live=8)

    async def parked() -> None:
        async with pool.acquire(spec) as sandbox:
            await sandbox.exec(NUMPY)

    cold = _bwrap(f"import sys; sys.path.append({_site_packages()!r}); {NUMPY[-1]}")
    for action in (warm, cold, parked):
        await action()
    warm_s, cold_s, parked_s = [], [], []
    for _ in range(ROUNDS // 2):
        warm_s.append(await _timed(warm))
        await asyncio.sleep(_ENDING_S)
        cold_s.append(await _timed(cold))
        await _at_rest(pool)
        parked_s.append(await _timed(parked))
    await pool.close()
    fast, slow, ready = (statistics.median(times) for times in (warm_s, cold_s, parked_s))
    return [
        Line("numpy, cold bwrap", slow * 1e3, "ms", 'bwrap python -c "import numpy"'),
        Line("numpy, imported before, on demand", fast * 1e3, "ms", "made, run, told to end"),
        Line("cold ÷ on demand", slow / fast, "x", bar=12),
        Line("numpy, imported before, parked", ready * 1e3, "ms", "handed out, run"),
        Line("cold ÷ parked", slow / ready, "x", bar=12),
    ]


async def _output(backend: BubblewrapBackend) -> list[Line]:
    """How long a program that writes for ever lives, beyond what one needs that stays just below."""
    spec = SandboxSpec()
    below = f"import os; os.write(1, b'x' * {spec.limits.output_bytes - 65536})"
    times: dict[str, list[float]] = {"below": [], "flood": []}
    for _ in range(10):
        for name, code in (("below", below), ("flood", "import os\nwhile True: os.write(1, b'x' * 65536)")):
            sandbox = await backend.create(spec)
            result = await sandbox.exec(["python", "-c", code])
            await sandbox.close()
            assert result.status == ("ok" if name == "below" else "output_limit"), result
            times[name].append(result.wall_s)
    over = statistics.median(times["flood"]) - statistics.median(times["below"])
    return [Line("endless output is cut after", over * 1e3, "ms", "", bar=100, direction="at_most")]


async def _throughput(backend: BubblewrapBackend) -> tuple[float, list[Line]]:
    """(programs a second of ours, lines)"""
    pool = SandboxPool(backend, min_ready=2, max_live=2 * IN_FLIGHT)
    cold = _bwrap("pass")
    spec = SandboxSpec()

    async def ours() -> None:
        result = await pool.run(spec, PASS)
        assert result.status == "ok", result

    cold_backend = ColdBubblewrapBackend()
    await asyncio.to_thread(cold_backend.probe)

    async def same() -> None:
        result = await cold_backend.run(spec, PASS)
        assert result.status == "ok", result

    await ours()
    fast, slow, equal = [], [], []
    for _ in range(3):
        fast.append(await per_second(ours, 300))
        slow.append(await per_second(cold, 60))
        equal.append(await per_second(same, 24))
    await pool.close()
    rate, cold_rate, same_rate = (statistics.median(rates) for rates in (fast, slow, equal))
    return rate, [
        Line("throughput", rate, "/s", f"{IN_FLIGHT} in flight, {os.cpu_count()} CPUs"),
        Line("throughput, cold bwrap, same protections", same_rate, "/s", f"{IN_FLIGHT} in flight"),
        Line("throughput ÷ the same", rate / same_rate, "x", "filter, limits, files, cgroup", bar=3),
        Line("throughput, plain bwrap", cold_rate, "/s", "namespaces only"),
        Line("throughput ÷ plain bwrap", rate / cold_rate, "x", bar=1.5),
    ]


async def _workspace(backend: BubblewrapBackend) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="flywheel-bench-") as folder:
        os.environ["FLYWHEEL_ARTIFACTS"] = f"file://{folder}"
        spec = SandboxSpec()
        content = os.urandom(10 * 1024)
        full = {f"d{n % 50}/f{n}": content + b"%d" % n for n in range(2000)}
        sandbox = await backend.create(spec)
        resets = []
        for _ in range(8):
            await sandbox.put(full)
            resets.append(await _timed(sandbox.reset))
        await sandbox.put(full)
        whole_s = await _timed(sandbox.snapshot)
        changed_s, git_s = [], []
        commit = _git(Path(folder) / "git", full)
        for turn in range(9):
            files = {f"d{n % 50}/f{n}": content + b"%d %d" % (n, turn) for n in range(100)}
            await sandbox.put(files)
            changed_s.append(await _timed(sandbox.snapshot))
            git_s.append(await asyncio.to_thread(commit, files))
        last = await sandbox.snapshot()
        fork_s = []
        for _ in range(5):
            began = time.perf_counter()
            fork = await backend.create(spec, last)
            fork_s.append(time.perf_counter() - began)
            await fork.close()
        await sandbox.close()
        probe = ArtifactStore(f"file://{folder}")
        disk_s = [await _timed(lambda: asyncio.to_thread(probe.put, os.urandom(1 << 20))) for _ in range(9)]
    reset, snapshot, commits = (statistics.median(times) for times in (resets, changed_s, git_s))
    return [
        Line("reset of 20 MB in 2,000 files", reset * 1e3, "ms", bar=5, direction="at_most"),
        Line("one artifact of 1 MB stored", statistics.median(disk_s) * 1e3, "ms", "this disk's fsync"),
        Line("snapshot of 100 changed files", snapshot * 1e3, "ms", "of 2,000"),
        Line("the same by git", commits * 1e3, "ms", "git add --all, git commit"),
        Line("snapshot ÷ git", snapshot / commits, "x", "same files, same disk", bar=1, direction="at_most"),
        Line("first snapshot of 2,000 files", whole_s * 1e3, "ms"),
        Line("fork of 2,000 files", statistics.median(fork_s) * 1e3, "ms"),
    ]


def _git(folder: Path, files: Mapping[str, bytes]) -> Callable[[Mapping[str, bytes]], float]:
    """A repository of ``files``; what commits changed ones and says how long that took, writing them
    not counted."""
    git = shutil.which("git")
    if git is None:
        raise SystemExit("git is not installed: snapshots are compared with its commits.")
    command = [git, "-C", str(folder), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]

    def commit(changed: Mapping[str, bytes]) -> float:
        for path, content in changed.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        began = time.perf_counter()
        subprocess.run([*command, "add", "--all"], check=True)
        subprocess.run([*command, "commit", "--quiet", "--message", "changed"], check=True)
        return time.perf_counter() - began

    subprocess.run([git, "init", "--quiet", str(folder)], check=True)
    commit(files)
    return commit


async def _many(backend: BubblewrapBackend) -> list[Line]:
    """A thousand live at once, each of which has answered; against bare interpreters one by one."""
    spec = SandboxSpec()
    bare = statistics.median([await _timed(_bare) for _ in range(ROUNDS)])
    free = psutil.virtual_memory().available
    began = time.perf_counter()
    waiting = asyncio.Semaphore(16)
    live: list[Sandbox] = []

    async def one() -> None:
        async with waiting:
            sandbox = await backend.create(spec)
            live.append(sandbox)

    try:
        await asyncio.gather(*(one() for _ in range(MANY)))
        took_s = time.perf_counter() - began
        each = (free - psutil.virtual_memory().available) / MANY
        own = sum(_proportional(process) for process in psutil.Process().children(recursive=True)) / MANY
        results = await asyncio.gather(*(sandbox.exec(["/bin/true"]) for sandbox in live[::100]))
        assert all(result.status == "ok" for result in results)
    finally:
        await asyncio.gather(*(sandbox.close() for sandbox in live))
    return [
        Line(f"{MANY:,} live sandboxes after", took_s, "s", "all live at once"),
        Line("one of them ÷ bare", took_s / MANY / bare, "x", "interpreter", bar=0.55, direction="at_most"),
        Line(
            "memory of each, the machine's", each / MIB, "MB", "kernel included", bar=4, direction="at_most"
        ),
        Line("memory of each, its processes'", own / MIB, "MB", "proportional set"),
    ]


def _proportional(process: psutil.Process) -> float:
    with suppress(psutil.Error, OSError, StopIteration):
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        return 1024 * float(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return 0.0


async def per_second(action: Action, count: int, in_flight: int = IN_FLIGHT) -> float:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await action()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return count / (time.perf_counter() - began)


async def _timed(action: Action) -> float:
    began = time.perf_counter()
    await action()
    return time.perf_counter() - began


async def _at_rest(pool: SandboxPool) -> None:
    """Two are parked, and their helpers have had a moment too."""
    while pool.stats().ready < 2 or pool.stats().live != 2:
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.01)


async def _bare() -> None:
    process = await asyncio.create_subprocess_exec(_base_python(), "-I", "-S", "-c", "pass")
    assert await process.wait() == 0


def _bwrap(code: str) -> Action:
    """A cold bwrap with the same namespaces for each program, as a simple sandbox does it."""
    bwrap = str(bwrap_candidates()[0])
    options = [
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    command = [bwrap, *options, "--tmpfs", "/tmp", "--", _base_python(), "-s", "-S", "-P", "-B", "-c", code]

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
        assert await process.wait() == 0

    return run


def _base_python() -> str:
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _site_packages() -> str:
    import numpy

    return str(Path(numpy.__file__).parents[1])


def main() -> int:
    return report("sandbox", asyncio.run(measure()))


if __name__ == "__main__":
    sys.exit(main())
