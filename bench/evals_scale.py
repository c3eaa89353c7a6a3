"""A run of a million results beside one of ten thousand: pages, queries, memory.

Both runs are made in a scratch database on PostgreSQL that is dropped at the end (its server is named
by BENCH_POSTGRES), in a process of its own, because Django reads its database once. Pages are asked of
a server in that process, in turns with /healthz, so that a busy machine slows all of them. Each run is
added up in a fresh process: its memory is what the kernel says is resident at the peak, above what was
resident before it began.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from bench.harness import Line, report

SERVER = os.environ.get("BENCH_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
SAMPLES = 4
SMALL, LARGE = 2_500, 250_000  # cases
ROUNDS, FEW_ROUNDS = 25, 3
FEW = ("comparison",)  # seconds each
PER_CASE = ("comparison", "suite version")  # their time grows with the cases of the suite
PAGE_BAR, GROWTH_BAR, MEMORY_BAR = 25.0, 2.0, 2.0
_NAME = f"flywheel_bench_{os.getpid()}"


def main() -> int:
    return report("evals_scale", lines())


def lines() -> list[Line]:
    """Every figure with its bar; needs a PostgreSQL server where a database may be made."""
    with tempfile.TemporaryDirectory(prefix="flywheel-bench-") as folder, _scratch_database() as url:
        env = {
            **os.environ,
            "FLYWHEEL_DATA": folder,
            "FLYWHEEL_DATABASE_URL": url,
            "FLYWHEEL_ARTIFACTS": f"file://{folder}/artifacts",
            "FLYWHEEL_LOG_LEVEL": "ERROR",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        child = [sys.executable, "-m", "bench.evals_scale", "measure"]
        done = subprocess.run(child, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return [Line(**row) for row in json.loads(done.stdout.splitlines()[-1])]


@contextmanager
def _scratch_database() -> Any:
    import psycopg

    server = SERVER.replace("postgres://", "postgresql://", 1)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{_NAME}"')
    try:
        yield SERVER.rpartition("/")[0] + f"/{_NAME}"
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{_NAME}" WITH (FORCE)')


def measure() -> list[dict[str, Any]]:
    """In the child: fill the database, add up, ask."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from apps.evals.services import run_refigure
    from bench.evals_scale_rows import World

    began = time.perf_counter()
    world = World()
    runs = {"small": world.run("small", SMALL, SAMPLES), "large": world.run("large", LARGE, SAMPLES)}
    others = {name: world.again(run) for name, run in runs.items()}
    world.analyze()
    _say(f"the runs are there after {time.perf_counter() - began:.0f} s; adding them up")
    adding = {name: _adding_up(run.pk) for name, run in runs.items()}
    for other in others.values():
        run_refigure(run=other)
    small, large = _added_up(adding["small"]), _added_up(adding["large"])
    _say(f"added up after {time.perf_counter() - began:.0f} s; asking the pages")
    pages = {"health": {"": "/healthz"}, **world.pages(runs, others)}
    times, queries = _asked(world, pages)
    p95 = {name: {size: _p95(row) for size, row in sizes.items()} for name, sizes in times.items()}
    found = [
        Line("run page at 1,000,000 results, times /healthz", p95["run"]["large"] / p95["health"][""], "×",
             "p95", PAGE_BAR, "at_most"),
        Line("run page at 1,000,000, times 10,000", p95["run"]["large"] / p95["run"]["small"], "×", "p95",
             GROWTH_BAR, "at_most"),
        *_grown(times, queries),
        Line("memory to add up 1,000,000, times 10,000", large["grown"] / small["grown"], "×",
             "peak over the process before", MEMORY_BAR, "at_most"),
        *[Line(f"{name} page at {size}" if size else f"{name} page", 1000 * value, "ms", "p95, server")
          for name, sizes in p95.items() for size, value in sizes.items()],
        Line("queries of a run page", queries["run"]["large"], "queries"),
        Line("memory to add up 10,000", small["grown"], "MiB", f"resident, over {small['before']:.0f}"),
        Line("memory to add up 1,000,000", large["grown"], "MiB", f"resident, over {large['before']:.0f}"),
        Line("time to add up 1,000,000", large["took"], "s"),
        Line("time of all of this", time.perf_counter() - began, "s"),
    ]  # fmt: skip
    return [
        {
            "name": line.name, "value": line.value, "unit": line.unit, "peer": line.peer, "bar": line.bar,
            "direction": line.direction,
        }
        for line in found
    ]  # fmt: skip


def _grown(times: dict[str, dict[str, list[float]]], queries: dict[str, dict[str, int]]) -> list[Line]:
    """Each page at 1,000,000 results beside the same at 10,000, by the median. What works on all cases of
    a suite has no bar on its time; its queries have."""
    lines = []
    for name, sizes in times.items():
        if "large" not in sizes:
            continue
        bar = None if name in PER_CASE else GROWTH_BAR
        grown = statistics.median(sizes["large"]) / statistics.median(sizes["small"])
        if name != "run":
            lines.append(
                Line(f"{name} page at 1,000,000, times 10,000", grown, "×", "median", bar, "at_most")
            )
        more = queries[name]["large"] - queries[name]["small"]
        lines.append(Line(f"{name} page, queries more at 1,000,000", more, "queries", "", 0, "at_most"))
    return lines


def _asked(
    world: Any, pages: dict[str, dict[str, str]]
) -> tuple[dict[str, dict[str, list[float]]], dict[str, dict[str, int]]]:
    """The server's seconds, and queries, of each page and size, all asked in turns."""
    asked = [(name, size, path) for name, sizes in pages.items() for size, path in sizes.items()]
    times: dict[str, dict[str, list[float]]] = {
        name: {size: [] for size in sizes} for name, sizes in pages.items()
    }
    queries: dict[str, dict[str, int]] = {name: {} for name in pages}
    for name, size, path in asked:
        world.ask(path)  # templates are compiled once
        queries[name][size] = world.queries_of(path)
    gc.collect()
    for at in range(ROUNDS):
        for name, size, path in asked:
            if name not in FEW or at < FEW_ROUNDS:
                began = time.perf_counter()
                world.ask(path)
                times[name][size].append(time.perf_counter() - began)
    return times, queries


def _adding_up(run: int) -> subprocess.Popen[str]:
    """A process of its own that adds up one run: what it needs is nobody else's memory."""
    child = [sys.executable, "-m", "bench.evals_scale", "add", str(run)]
    return subprocess.Popen(child, stdout=subprocess.PIPE, text=True)


def _added_up(process: subprocess.Popen[str]) -> dict[str, float]:
    said, _ = process.communicate()
    assert process.returncode == 0, process.returncode
    found: dict[str, float] = json.loads(said)
    return found


def add(run_id: int) -> dict[str, float]:
    """In a fresh process: MiB resident ``before``, with everything imported and a connection open, and what
    the peak ``grown`` above that is; the kernel's own figures, so the driver's buffers count too."""
    import django

    django.setup()
    from apps.evals.models import Run
    from apps.evals.services import run_refigure

    run = Run.objects.select_related("suite_version").get(pk=run_id)
    gc.collect()
    before, began = _resident_mib("VmRSS"), time.perf_counter()
    run_refigure(run=run)
    return {
        "before": before,
        "grown": _resident_mib("VmHWM") - before,
        "took": time.perf_counter() - began,
    }


def _resident_mib(name: str) -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measure()))
    elif sys.argv[1:2] == ["add"]:
        print(json.dumps(add(int(sys.argv[2]))))
    else:
        sys.exit(main())
