"""One pool for a process, whatever loops and threads its callers live in."""

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from tests.workers.sandbox.fake_backend import FakeBackend
from workers.sandbox.pool import SandboxPool
from workers.sandbox.protocol import SandboxSpec
from workers.sandbox.worker_pool import WorkerPool

SPEC = SandboxSpec()


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def pool(backend: FakeBackend) -> Iterator[WorkerPool]:
    pool = WorkerPool(backend, lambda backend: SandboxPool(backend, max_live=4, min_ready=1))
    yield pool
    pool.close()
    assert backend.open == []


async def use(pool: WorkerPool) -> str:
    async with pool.acquire(SPEC) as sandbox:
        assert (await sandbox.exec(["python"])).status == "ok"
        return sandbox.id


def test_what_one_loop_left_ready_serves_the_next(pool: WorkerPool, backend: FakeBackend) -> None:
    asyncio.run(use(pool))
    while pool.stats().ready == 0:
        pass
    ready = backend.open[0].id

    assert asyncio.run(use(pool)) == ready


def test_threads_share_the_places(pool: WorkerPool, backend: FakeBackend) -> None:
    most = []
    backend.on_made = lambda _: most.append(len(backend.open))
    threads = [threading.Thread(target=lambda: asyncio.run(use(pool))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) <= 4
    assert pool.stats().checkouts == 12


def test_a_loop_that_ended_with_a_sandbox_open_gives_it_back(pool: WorkerPool) -> None:
    kept = []

    async def careless() -> None:
        kept.append(await pool.create(SPEC))

    asyncio.run(careless())
    asyncio.run(use(pool))
    sweeping = pool._pool
    assert sweeping is not None
    assert pool._loop is not None
    asyncio.run_coroutine_threadsafe(sweeping.sweep(), pool._loop).result()

    assert (pool.stats().leased, pool.stats().leaked) == (0, 1)


def test_a_sandbox_that_nobody_holds_is_given_back(pool: WorkerPool) -> None:
    async def forgetful() -> None:
        await pool.create(SPEC)
        gc.collect()
        while pool.stats().leased:
            await asyncio.sleep(0.001)

    asyncio.run(forgetful())

    assert pool.stats().leaked == 1


def test_cancelling_the_caller_reaches_the_pool(pool: WorkerPool, backend: FakeBackend) -> None:
    async def cancelled(delay_s: float) -> None:
        task = asyncio.create_task(use(pool))
        await asyncio.sleep(delay_s)
        task.cancel()
        await asyncio.wait([task])

    backend.create_s = 0.002
    for step in range(30):
        asyncio.run(cancelled(step * 0.0002))

    while pool.stats().live != pool.stats().ready:
        pass
    assert pool.stats().leased == 0


def test_it_begins_anew_after_it_was_closed(pool: WorkerPool) -> None:
    asyncio.run(use(pool))
    pool.close()

    assert asyncio.run(use(pool))
