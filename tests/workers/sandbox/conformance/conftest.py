"""Each test of this folder runs on each backend, through a pool that lives as long as the session."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from tests.workers.sandbox.programs import SMALL, agents_of
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.choice import chosen_backend
from workers.sandbox.pool import SandboxPool
from workers.sandbox.protocol import Backend, ExecResult, Limits, Sandbox, SandboxSpec
from workers.sandbox.worker_pool import WorkerPool

SPEC = SandboxSpec(limits=SMALL)
READY = 2


@pytest.fixture(scope="session", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    found = chosen_backend({**os.environ, "FLYWHEEL_SANDBOX": request.param})
    if request.param == "docker" and not (capabilities := found.probe()).available:
        pytest.skip(f"needs a Docker engine: {capabilities.reason}")
    return found


@pytest.fixture(scope="session")
def pool(backend: Backend) -> Iterator[WorkerPool]:
    before = memory_groups()
    pool = WorkerPool(backend, lambda backend: SandboxPool(backend, min_ready=READY, max_live=8))
    yield pool
    pool.close()
    if isinstance(backend, BubblewrapBackend):
        backend.close()
        assert memory_groups() - before == set()


def memory_groups() -> set[Path]:
    """Those of this process: other tests of the run may hold some of their own."""
    hierarchy = find_hierarchy()
    return set(hierarchy.parent.glob(f"flywheel-{os.getpid()}-*")) if hierarchy else set()


@pytest.fixture
def unharmed(pool: WorkerPool) -> Iterator[None]:
    """After the test: the next program runs in a clean sandbox, the pool is at full strength, and the
    host has as many sandboxes below this process as before."""
    before = full_strength(pool)
    replaced = pool.stats().leaked
    yield
    result = run(pool, "import os; print(os.listdir('.'), os.listdir('/tmp'), sum(range(10)))")
    assert (result.status, result.stdout.text) == ("ok", "[] [] 45\n")
    assert full_strength(pool) <= before
    assert pool.stats().leaked == replaced


def full_strength(pool: WorkerPool) -> int:
    """Wait until as many are parked as should be for each specification, and nothing else lives; how many
    sandboxes are on the host then. All that runs in a sandbox ends with its first process."""
    run(pool, "pass")

    def recovered() -> bool:
        stats = pool.stats()
        return not (stats.leased or stats.live != stats.ready or stats.ready % READY)

    until(recovered, what=f"the pool recovers from {pool.stats()}", every_s=0.005)
    return len(agents_of())


def run(pool: WorkerPool, code: str, *, limits: Limits = SMALL, **arguments: object) -> ExecResult:
    """A few lines of Python in a fresh sandbox."""
    import asyncio

    argv = ["python", "-c", textwrap.dedent(code)]
    return asyncio.run(pool.run(SandboxSpec(limits=limits), argv, **arguments))  # type: ignore[arg-type]


async def py(box: Sandbox, code: str, **arguments: object) -> ExecResult:
    """The same in a sandbox that is there."""
    return await box.exec(["python", "-c", textwrap.dedent(code)], **arguments)  # type: ignore[arg-type]
