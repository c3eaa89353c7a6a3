"""What the pool promises, on a backend without processes: places, order, health, nothing leaked."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable

import pytest

from tests.waiting import GUARD_S, becomes
from tests.workers.sandbox.fake_backend import FakeBackend
from workers.sandbox.channel import NotBuilt
from workers.sandbox.pool import PoolFull, PoolTimeout, SandboxPool
from workers.sandbox.protocol import Limits, SandboxSpec, SandboxUnavailable, Snapshot

SPEC = SandboxSpec()
OTHER = SandboxSpec(limits=Limits(wall_s=1.0))

MakePool = Callable[..., SandboxPool]


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
async def make(backend: FakeBackend) -> AsyncIterator[MakePool]:
    pools: list[SandboxPool] = []

    def made(**options: float) -> SandboxPool:
        pools.append(SandboxPool(backend, **options))  # type: ignore[arg-type]
        return pools[-1]

    yield made
    for pool in pools:
        await pool.close()
        assert pool.stats().live == 0
    assert backend.open == []


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_sandbox_serves_one_caller_and_is_then_ended(make: MakePool, backend: FakeBackend) -> None:
    pool = make()

    seen = []
    for _ in range(3):
        async with pool.acquire(SPEC) as sandbox:
            seen.append(sandbox.id)

    await settle()
    assert len(set(seen)) == 3
    assert all(made.closed == 1 for made in backend.made if made.id in seen)


async def test_after_the_first_use_sandboxes_of_the_specification_are_parked(make: MakePool) -> None:
    pool = make(min_ready=3)
    async with pool.acquire(SPEC):
        pass
    await settle()

    assert pool.stats().ready == 3
    created = pool.stats().created
    async with pool.acquire(SPEC):
        assert pool.stats().created == created


async def test_a_sick_one_is_replaced_before_it_is_handed_out(make: MakePool, backend: FakeBackend) -> None:
    pool = make(min_ready=2)
    async with pool.acquire(SPEC):
        pass
    await settle()
    sick = backend.open
    for sandbox in sick:
        sandbox.sick = True

    async with pool.acquire(SPEC) as sandbox:
        assert sandbox.id not in {made.id for made in sick[:1]}
        assert (await sandbox.exec(["python"])).status == "ok"

    assert pool.stats().replaced == 1


async def test_a_host_on_which_every_sandbox_is_sick_is_said(make: MakePool, backend: FakeBackend) -> None:
    pool = make()
    backend.on_made = lambda sandbox: setattr(sandbox, "sick", True)

    with pytest.raises(SandboxUnavailable, match=r"3 sandboxes in a row did not answer \(it is gone\)"):
        await pool.create(SPEC)

    await settle()
    assert pool.stats().live == 0


async def test_no_more_live_than_allowed_and_the_line_is_served_in_order(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(max_live=3, min_ready=2)
    most, order = 0, []

    async def use(number: int) -> None:
        nonlocal most
        async with pool.acquire(SPEC if number % 2 else OTHER):
            order.append(number)
            most = max(most, len(backend.open))
            await asyncio.sleep(0.001)

    await asyncio.gather(*(use(number) for number in range(24)))

    assert most <= 3
    assert order == sorted(order)


async def test_a_full_line_refuses_at_once(make: MakePool) -> None:
    pool = make(max_live=1, max_queue=1)
    async with pool.acquire(SPEC):
        waiting = asyncio.create_task(pool.create(SPEC))
        await settle()
        with pytest.raises(PoolFull, match="1 callers wait for a sandbox already"):
            await pool.create(SPEC)
        assert pool.stats().waiting == 1

    await (await waiting).close()
    assert pool.stats().refused == 1


async def test_a_deadline_that_passes_is_said_and_costs_no_place(make: MakePool) -> None:
    pool = make(max_live=1)
    async with pool.acquire(SPEC):
        with pytest.raises(PoolTimeout, match=r"No sandbox could be had within 0\.0 s \(1 of 1 are taken\)"):
            await pool.create(SPEC, deadline_s=0.02)

    async with pool.acquire(SPEC, deadline_s=GUARD_S):
        assert pool.stats().live == 1


async def test_a_backend_that_hangs_costs_no_place(make: MakePool, backend: FakeBackend) -> None:
    pool = make(max_live=1)
    backend.create_s = 60

    with pytest.raises(PoolTimeout):
        await pool.create(SPEC, deadline_s=0.02)

    assert pool.stats().live == 0


async def test_a_backend_that_refuses_is_heard_and_costs_no_place(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(max_live=1)
    backend.fails = 1

    with pytest.raises(SandboxUnavailable, match="no sandbox today"):
        await pool.create(SPEC)

    async with pool.acquire(SPEC, deadline_s=GUARD_S):
        pass


async def test_what_cannot_be_had_is_not_tried_again_in_the_background(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(min_ready=2)
    backend.fails = 1
    with pytest.raises(SandboxUnavailable):
        await pool.create(OTHER)

    async with pool.acquire(SPEC):
        pass
    await settle()

    assert {made.spec for made in backend.made} == {SPEC}


async def test_parked_ones_of_another_specification_give_way(make: MakePool) -> None:
    pool = make(max_live=2, min_ready=2)
    async with pool.acquire(SPEC):
        pass
    await settle()
    assert pool.stats().ready == 2

    async with pool.acquire(OTHER, deadline_s=GUARD_S) as sandbox:
        assert sandbox.spec == OTHER


async def test_many_specifications_do_not_pile_up_parked_sandboxes(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(max_live=50, min_ready=2, max_specs=3)
    for number in range(12):
        async with pool.acquire(SandboxSpec(env=(("N", str(number)),))):
            pass
    await settle()

    assert pool.stats().ready == 6
    assert {dict(made.spec.env)["N"] for made in backend.open} == {"9", "10", "11"}


async def test_a_snapshot_is_kept_ready_once_it_was_asked_for_twice(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(min_ready=1)
    base = Snapshot("1" * 64)
    async with pool.acquire(SPEC, base=base):
        await settle()
        assert pool.stats().ready == 0
    async with pool.acquire(SPEC, base=base):
        await settle()

    await settle()
    assert [made.base for made in backend.open] == [base.id]


async def test_a_cancelled_caller_leaves_nothing_wherever_it_was(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make(max_live=2, min_ready=1)
    backend.create_s = backend.close_s = 0.001

    async def use() -> None:
        async with pool.acquire(SPEC) as sandbox:
            await sandbox.exec(["python"])

    for turns in range(40):
        tasks = [asyncio.create_task(use()) for _ in range(4)]
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns % 3 == 0:
            await asyncio.sleep(0.0015)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async with pool.acquire(SPEC, deadline_s=GUARD_S):
        pass
    await becomes(lambda: pool.stats().live == pool.stats().ready == len(backend.open) == 1)
    assert pool.stats().leaked == 0


async def test_a_sandbox_whose_owner_died_without_closing_is_taken_back(make: MakePool) -> None:
    pool = make(max_live=1, min_ready=0)
    held = []

    async def careless() -> None:
        held.append(pool.acquire(SPEC))
        await held[0].__aenter__()

    await asyncio.create_task(careless())
    assert pool.stats().leased == 1

    assert await pool.sweep() == 1
    assert (pool.stats().leased, pool.stats().leaked) == (0, 1)
    async with pool.acquire(SPEC, deadline_s=GUARD_S):
        pass


async def test_a_sandbox_that_nobody_holds_any_more_is_taken_back(make: MakePool) -> None:
    pool = make(max_live=1, min_ready=0)
    await pool.create(SPEC)  # and forgotten
    gc.collect()
    await settle()

    assert (pool.stats().live, pool.stats().leaked) == (0, 1)


async def test_a_sandbox_past_its_age_is_taken_back(make: MakePool) -> None:
    pool = make(max_live=1, min_ready=0, max_age_s=0.0)
    kept = await pool.create(SPEC)

    await pool.sweep()

    assert (pool.stats().live, pool.stats().leaked) == (0, 1)
    await kept.close()


async def test_closing_twice_ends_nobody_elses_sandbox(make: MakePool) -> None:
    pool = make(max_live=1, min_ready=0)
    first = await pool.create(SPEC)
    await first.close()
    second = await pool.create(SPEC)

    await first.close()

    assert (await second.exec(["python"])).status == "ok"


async def test_parked_ones_that_nobody_asks_for_are_ended(make: MakePool) -> None:
    pool = make(max_idle_s=0.0)
    async with pool.acquire(SPEC):
        pass
    await settle()

    await pool.sweep()
    await settle()

    assert pool.stats().live == 0


async def test_closing_the_pool_tells_those_who_wait(make: MakePool) -> None:
    pool = make(max_live=1)
    held = await pool.create(SPEC)
    waiting = asyncio.create_task(pool.create(SPEC))
    await settle()

    await pool.close()
    await held.close()

    with pytest.raises(SandboxUnavailable, match="pool of sandboxes is closed"):
        await waiting
    with pytest.raises(SandboxUnavailable, match="pool of sandboxes is closed"):
        await pool.create(SPEC)


async def test_what_is_being_made_while_the_pool_closes_is_ended(
    make: MakePool, backend: FakeBackend
) -> None:
    pool = make()
    backend.create_s = 0.01
    making = asyncio.create_task(pool.create(SPEC))
    await settle()

    await pool.close()

    with pytest.raises(SandboxUnavailable, match="pool of sandboxes is closed"):
        await making
    assert [sandbox.closed for sandbox in backend.made] == [1]


async def test_a_busy_pool_is_an_error_of_the_infrastructure_for_a_single_run(make: MakePool) -> None:
    pool = make(max_live=1, max_queue=0)
    async with pool.acquire(SPEC):
        result = await pool.run(SPEC, ["python"])

    await settle()
    assert result.status == "infra_error"
    assert "wait for a sandbox already" in result.detail
    assert (await pool.run(SPEC, ["python"])).status == "ok"


async def test_a_sandbox_that_could_not_be_built_is_an_error_of_the_infrastructure(
    make: MakePool, backend: FakeBackend
) -> None:
    def not_built(_: object) -> None:
        raise NotBuilt("The sandbox was not ready within 10 s.", "Look at the worker's log.")

    pool = make()
    backend.on_made = not_built

    result = await pool.run(SPEC, ["python"])

    backend.made.clear()
    assert (result.status, pool.stats().live) == ("infra_error", 0)
    assert "not ready within 10 s" in result.detail


async def test_the_figures_tell_waits_and_use(make: MakePool) -> None:
    pool = make(max_live=2, min_ready=0)
    async with pool.acquire(SPEC), pool.acquire(SPEC):
        late = asyncio.create_task(pool.create(SPEC))
        await asyncio.sleep(0.3)  # far longer than what comes before and after
    await (await late).close()
    await settle()

    stats = pool.stats()
    assert (stats.checkouts, stats.created, stats.live) == (3, 3, 0)
    assert stats.wait_max_s >= 0.02
    assert 0.5 < stats.busy_share <= 1.0
    assert stats.as_dict()["sandbox_checkouts"] == 3.0
    async with pool.acquire(SPEC):
        pass
    batch = pool.stats().since(stats)
    assert (batch.checkouts, batch.created, batch.places) == (1, 1, 2)
