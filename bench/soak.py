"""Ten thousand executions through the pool, one in twenty hostile: none lost, none leaked, memory flat.

    python -m bench.soak --count 10000 --backend bubblewrap

An honest program must return exactly its own answer; a hostile one must end in a way its row of the
table of hostile programs allows. What is left on the host is counted before and after.
"""

import argparse
import asyncio
import gc
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.harness import Line, report
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.choice import chosen_backend
from workers.sandbox.pool import SandboxPool
from workers.sandbox.protocol import MIB, ExecResult, Limits, SandboxSpec
from workers.sandbox.worker_pool import WorkerPool

LIMITS = Limits(
    wall_s=20.0,
    cpu_s=1,
    memory_bytes=96 * MIB,
    processes=24,
    open_files=64,
    file_bytes=4 * MIB,
    workspace_bytes=8 * MIB,
    output_bytes=256 * 1024,
    keep_bytes=8 * 1024,
)
SPEC = SandboxSpec(limits=LIMITS)
HOSTILE_SHARE = 0.05
READY = 2
# Kept for reuse: eight memory groups, a process with its handles in each; the SDK's connections.
_KEPT = {"bubblewrap": {"processes": 8, "cgroups": 8, "descriptors": 32}, "docker": {"descriptors": 8}}
_ENDED = ("cpu", "oom", "timeout", "signal", "nonzero")


class Hostile(NamedTuple):
    """``ends`` are the statuses it may have; a short deadline where only that ends it."""

    name: str
    code: str
    ends: tuple[str, ...]
    timeout_s: float | None = None


HOSTILE = (
    Hostile("endless loop", "while True: pass", ("cpu",)),
    Hostile(
        "ignores signals",
        "import signal, time\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "time.sleep(60)",
        ("timeout",),
        0.3,
    ),
    Hostile(
        "fork bomb",
        "import os, time\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "    except OSError: break",
        ("ok", "nonzero"),
    ),
    Hostile("recursive fork", "import os\nwhile True:\n try: os.fork()\n except OSError: pass", _ENDED, 0.3),
    Hostile(
        "thread bomb",
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        _ENDED,
    ),
    Hostile("allocates", "kept = []\nwhile True: kept.append(bytearray(b'x' * (1 << 20)))", _ENDED),
    Hostile(
        "allocates in children",
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0: kept = bytearray(b'x' * (20 << 20)); time.sleep(0.3); os._exit(0)\n"
        "while True:\n"
        "    try: os.wait()\n"
        "    except ChildProcessError: break",
        ("ok", *_ENDED),
    ),
    Hostile("floods stdout", "import os\nwhile True: os.write(1, b'x' * 65536)", ("output_limit",)),
    Hostile(
        "fills the disk",
        "import itertools\nfor n in itertools.count(): open(f'{n}', 'wb').write(bytes(1 << 20))",
        _ENDED,
    ),
    Hostile("empty files", "import itertools\nfor n in itertools.count(): open(f'/tmp/{n}', 'w')", _ENDED),
    Hostile("nested folders", "import os\nwhile True: os.mkdir('d'); os.chdir('d')", _ENDED),
    Hostile("open files", "kept = []\nwhile True: kept.append(open('/dev/null'))", ("nonzero",)),
    Hostile(
        "daemon",
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(60)\n os._exit(0)",
        ("ok",),
    ),
    Hostile("holds stdout", "import os, time\nif os.fork() == 0: time.sleep(60)\nprint('done')", ("ok",)),
    Hostile("kills everybody", "import os\nos.kill(-1, 9)", ("ok", *_ENDED)),
    Hostile("kills the first process", "import os\nos.kill(1, 9)", ("ok", *_ENDED)),
    Hostile("litters", "for f in ('/tmp/', '/dev/shm/', ''): open(f + 'litter', 'w').write('x')", ("ok",)),
    Hostile(
        "links out",
        "import os\nos.symlink('/etc/shadow', 'a'); os.symlink('/', 'b'); os.mkfifo('c')",
        ("ok",),
    ),
    Hostile("blocks on a pipe", "import os\nos.mkfifo('/tmp/p'); open('/tmp/p')", ("timeout",), 0.3),
    Hostile(
        "breaks builtins",
        "import builtins, os, json\nos._exit = builtins.print = json.loads = None",
        ("ok", *_ENDED),
    ),
    Hostile("recursion", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", _ENDED),
    Hostile("kills itself", "import os\nos.kill(os.getpid(), 9)", ("signal",)),
)


_HONEST = """
import os, sys
print(sum(map(int, sys.argv[1:])), sys.stdin.read(), sorted(os.listdir(".")), os.listdir("/tmp"))
"""


class Left(NamedTuple):
    """What there is on the host that could be left behind."""

    processes: int
    descriptors: int
    cgroups: int
    mounts: int
    files: int
    containers: int


@dataclass
class Tally:
    done: int = 0
    wrong: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)  # of this process, in bytes


async def soak(pool: WorkerPool, count: int, in_flight: int, seed: int) -> Tally:
    tally = Tally()
    draw = random.Random(seed)
    jobs = iter([(number, draw.random() < HOSTILE_SHARE, draw.getrandbits(32)) for number in range(count)])

    async def work() -> None:
        for number, hostile, drawn in jobs:
            await (_hostile(pool, tally, drawn) if hostile else _honest(pool, tally, number, drawn))
            tally.done += 1
            if tally.done % 50 == 0:
                tally.memory.append(psutil.Process().memory_info().rss)
            if tally.done % 1000 == 0:
                print(f"  {tally.done:,} done, {len(tally.wrong)} wrong", file=sys.stderr, flush=True)

    await asyncio.gather(*(work() for _ in range(in_flight)))
    return tally


async def _honest(pool: WorkerPool, tally: Tally, number: int, drawn: int) -> None:
    argv = ["python", "-c", _HONEST, str(number), str(drawn)]
    result = await pool.run(SPEC, argv, stdin=b"%x" % drawn, files={"given": b"x"})
    tally.statuses[f"honest {result.status}"] += 1
    if result.stdout.text != f"{number + drawn} {drawn:x} ['given'] []\n":
        tally.wrong.append(f"job {number}: {_said(result)}")


async def _hostile(pool: WorkerPool, tally: Tally, drawn: int) -> None:
    program = HOSTILE[drawn % len(HOSTILE)]
    result = await pool.run(SPEC, ["python", "-c", program.code], timeout_s=program.timeout_s)
    tally.statuses[f"hostile {result.status}"] += 1
    if result.status not in program.ends:
        tally.wrong.append(f"{program.name}: {_said(result)}")


def _said(result: ExecResult) -> str:
    said = f"{result.stdout.text[:80]!r} {result.stderr.text[-120:]!r}"
    return f"{result.status} {result.exit_code} {result.detail} {said}"


def measure(backend: str, count: int, in_flight: int, seed: int) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="flywheel-soak-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        pool = WorkerPool(
            chosen_backend({**os.environ, "FLYWHEEL_SANDBOX": backend}),
            lambda backend: SandboxPool(backend, min_ready=READY, max_live=2 * in_flight),
        )
        outside = _left(pool.name, folder)
        asyncio.run(soak(pool, 60, in_flight, seed + 1))
        _settle(pool)
        before = _left(pool.name, folder)
        began = time.perf_counter()
        tally = asyncio.run(soak(pool, count, in_flight, seed))
        took_s = time.perf_counter() - began
        _settle(pool)
        after, stats = _left(pool.name, folder), pool.stats()
        pool.close()
        gc.collect()
        closed = _left(pool.name, folder)
    for wrong in tally.wrong[:10]:
        print(f"  wrong: {wrong}", file=sys.stderr)
    for status, number in sorted(tally.statuses.items()):
        print(f"  {status:<24}{number:>7,}", file=sys.stderr)
    lines = [
        Line("executions", tally.done, "", f"{in_flight} in flight, {backend}"),
        Line("executions a second", tally.done / took_s, "/s"),
        Line("lost or wrong", count - tally.done + len(tally.wrong), "", bar=0, direction="at_most"),
        Line("not begun (infra_error)", _infrastructure(tally), "", bar=0, direction="at_most"),
        Line("sick at checkout", stats.replaced, "", "replaced before use"),
        Line("leases that were lost", stats.leaked, "", bar=0, direction="at_most"),
        Line("longest wait for a sandbox", stats.wait_max_s, "s"),
        Line("share of places in use", stats.busy_share, ""),
    ]
    for name in Left._fields:
        left = getattr(after, name) - getattr(before, name)
        bar = _KEPT[pool.name].get(name, 0)
        lines.append(Line(f"{name} left while it runs", left, "", bar=bar, direction="at_most"))
        left = getattr(closed, name) - getattr(outside, name)
        bar = 4 if name == "descriptors" else 0  # a library may keep some of its own for good
        lines.append(Line(f"{name} left when closed", left, "", bar=bar, direction="at_most"))
    return [*lines, *_memory(tally)]


def _infrastructure(tally: Tally) -> int:
    return tally.statuses["honest infra_error"] + tally.statuses["hostile infra_error"]


def _memory(tally: Tally) -> list[Line]:
    """The last tenth of the samples against the second: the first warms up."""
    tenth = max(1, len(tally.memory) // 10)
    early, late = tally.memory[tenth : 2 * tenth] or tally.memory, tally.memory[-tenth:]
    grown = (sum(late) / len(late) - sum(early) / len(early)) / MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Line("memory of this process grew", grown, "MB", "last tenth − second", bar=4, direction="at_most"),
        Line("memory of this process, peak", peak, "MB"),
    ]


def _settle(pool: WorkerPool) -> None:
    """Wait until only parked sandboxes live."""
    deadline = time.monotonic() + 30
    while (stats := pool.stats()).live != READY or stats.ready != READY:
        if time.monotonic() > deadline:
            print(f"  the pool is not at rest: {stats}", file=sys.stderr)
            return
        time.sleep(0.01)
    gc.collect()


def _left(backend: str, folder: str) -> Left:
    hierarchy = find_hierarchy()
    return Left(
        processes=_processes(),
        descriptors=len(os.listdir("/proc/self/fd")),
        cgroups=len(list(hierarchy.parent.glob(f"flywheel-{os.getpid()}-*"))) if hierarchy else 0,
        mounts=_mounts(backend),
        files=sum(len(files) for _, _, files in os.walk(folder)),
        containers=_containers() if backend == "docker" else 0,
    )


def _processes() -> int:
    with suppress(psutil.Error):
        return len(psutil.Process().children(recursive=True))
    return 0


def _mounts(backend: str) -> int:
    """Other containers of the host come and go; they count only where containers are what is tested."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sum(backend == "docker" or "docker" not in line for line in lines)


def _containers() -> int:
    """Those of this process."""
    import docker

    client = docker.from_env()
    try:
        found = client.containers.list(all=True, filters={"label": "flywheel.sandbox=1"})
        return sum(f"/{os.getpid()}/" in container.labels.get("flywheel.process", "") for container in found)
    finally:
        client.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--backend", choices=["bubblewrap", "docker"], default="bubblewrap")
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return report("soak", measure(options.backend, options.count, options.in_flight, options.seed))


if __name__ == "__main__":
    sys.exit(main())
