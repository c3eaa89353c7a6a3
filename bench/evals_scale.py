"""A run of a million results beside one of ten thousand: pages, queries, memory.

Both runs are made in a scratch database on PostgreSQL that is dropped at the end (its server is named
by BENCH_POSTGRES), in a process of its own, because Django reads its database once. Pages are asked of
a server in that process, in turns with /healthz, so that a busy machine slows all of them.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from bench.harness import Line, report

SERVER = os.environ.get("BENCH_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
SAMPLES = 4
SMALL, LARGE = 2_500, 250_000  # cases
ROUNDS = 25
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

    world = World()
    small, large = world.run("small", SMALL, SAMPLES), world.run("large", LARGE, SAMPLES)
    world.analyze()
    _say("both runs are there; adding them up")
    run_refigure(run=small)  # what is imported and cached at first is nobody's memory
    small_peak = _peak_mib(lambda: run_refigure(run=small))
    began = time.perf_counter()
    large_peak = _peak_mib(lambda: run_refigure(run=large))
    took = time.perf_counter() - began
    _say("asking the pages")
    pages = {
        "health": "/healthz",
        "small": small.get_absolute_url(),
        "large": large.get_absolute_url(),
        "deep": f"{large.get_absolute_url()}?after={world.middle_of(large)}",
        "errors": f"{large.get_absolute_url()}?state=error",
        "family": f"{large.get_absolute_url()}?family=family-3",
        "tag": f"{large.get_absolute_url()}?tag={world.tag_choice(large)}",
        "search": f"{large.get_absolute_url()}?q=large-24999",
        "nothing found": f"{large.get_absolute_url()}?q=zzzz",
        "list": "/evals/runs/",
    }
    p95, queries = _asked(world, pages)
    page, grown = p95["large"] / p95["health"], p95["large"] / p95["small"]
    more, memory = queries["large"] - queries["small"], large_peak / small_peak
    found = [
        Line("run page at 1,000,000 results, times /healthz", page, "×", "p95", PAGE_BAR, "at_most"),
        Line("run page at 1,000,000, times 10,000", grown, "×", "p95", GROWTH_BAR, "at_most"),
        Line("queries more at 1,000,000 than at 10,000", more, "queries", "", 0, "at_most"),
        Line("memory to add up 1,000,000, times 10,000", memory, "×", "peak", MEMORY_BAR, "at_most"),
        *[Line(f"{name} page", 1000 * p95[name], "ms", "p95, server") for name in pages],
        Line("queries of a run page", queries["large"], "queries"),
        Line("memory to add up 1,000,000", large_peak, "MiB", "peak of Python"),
        Line("time to add up 1,000,000 (traced)", took, "s"),
    ]  # fmt: skip
    return [
        {
            "name": line.name, "value": line.value, "unit": line.unit, "peer": line.peer, "bar": line.bar,
            "direction": line.direction,
        }
        for line in found
    ]  # fmt: skip


def _asked(world: Any, pages: dict[str, str]) -> tuple[dict[str, float], dict[str, int]]:
    """p95 of the server's seconds, and queries, of each page, all asked in turns."""
    times: dict[str, list[float]] = {name: [] for name in pages}
    queries: dict[str, int] = {}
    for name, path in pages.items():
        world.ask(path)  # templates are compiled once
        queries[name] = world.queries_of(path)
    gc.collect()
    for _ in range(ROUNDS):
        for name, path in pages.items():
            began = time.perf_counter()
            world.ask(path)
            times[name].append(time.perf_counter() - began)
    return {name: _p95(values) for name, values in times.items()}, queries


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def _peak_mib(action: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measure()))
    else:
        sys.exit(main())
