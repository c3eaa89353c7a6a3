import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.waiting import GUARD_S, becomes
from workers.pipeline import Pipeline, PipelineMetrics


async def test_results_come_in_the_order_of_the_jobs() -> None:
    async def generate(job: int) -> int:
        await asyncio.sleep(0.01 * (5 - job))
        return job

    results, _ = await _pipeline(generate=generate).run(range(5))

    assert results == ["done 0", "done 1", "done 2", "done 3", "done 4"]


async def test_no_jobs_give_no_results() -> None:
    results, metrics = await _pipeline().run([])

    assert results == []
    assert metrics.lost == 0


async def test_generation_goes_on_while_answers_are_judged() -> None:
    generating: set[int] = set()
    beside: list[int] = []  # how many were generated while each was judged

    async def generate(job: int) -> int:
        generating.add(job)
        await asyncio.sleep(0.05)
        generating.remove(job)
        return job

    async def judge(item: int) -> Any:
        await asyncio.sleep(0.05)
        beside.append(len(generating))
        return f"done {item}"

    _, metrics = await _pipeline(generate=generate, judge=judge, concurrency=2, verify_concurrency=2).run(
        range(8)
    )

    assert any(beside[:-2])
    assert metrics.engine_busy_share + metrics.verify_busy_share > 1.0


async def test_a_lost_job_is_dropped_by_its_deadline_and_blocks_nobody() -> None:
    """verl#7155: one reply never comes; every other job is done and the loss is on record."""

    async def generate(job: int) -> int:
        if job == 1:
            await asyncio.Event().wait()
        return job

    pipeline = _pipeline(generate=generate, concurrency=2, deadline_s=2.0)
    results, metrics = await asyncio.wait_for(pipeline.run(range(6)), timeout=GUARD_S)

    assert results == ["done 0", "lost 1 generating", "done 2", "done 3", "done 4", "done 5"]
    assert metrics.lost == 1


async def test_a_judge_that_hangs_is_dropped_by_the_same_deadline() -> None:
    async def judge(item: int) -> str:
        if item == 0:
            await asyncio.Event().wait()
        return f"done {item}"

    pipeline = _pipeline(judge=judge, deadline_s=0.1, verify_concurrency=1)
    results, _ = await asyncio.wait_for(pipeline.run(range(3)), timeout=GUARD_S)

    assert results[0] == "lost 0 judging"
    assert len(results) == 3


async def test_a_slow_judge_holds_generation_back() -> None:
    made: list[int] = []

    async def generate(job: int) -> int:
        made.append(job)
        return job

    gate = asyncio.Event()

    async def judge(item: int) -> str:
        await gate.wait()
        return f"done {item}"

    running = asyncio.create_task(
        _pipeline(generate=generate, judge=judge, concurrency=2, verify_concurrency=1).run(range(50))
    )
    await asyncio.sleep(0.05)
    waiting = len(made)
    gate.set()
    results, metrics = await running

    assert waiting <= 2 + 2 + 1  # in the queue, in the hands of the two makers, with the judge
    assert len(results) == 50
    assert metrics.queue_depth_max <= 2


async def test_an_error_of_a_stage_ends_the_batch() -> None:
    async def judge(item: int) -> str:
        raise LookupError("no such verifier")

    with pytest.raises(LookupError, match="no such verifier"):
        await asyncio.wait_for(_pipeline(judge=judge).run(range(100)), timeout=GUARD_S)


async def test_a_cancelled_batch_stops_its_jobs() -> None:
    begun: list[int] = []
    stopped: list[int] = []

    async def generate(job: int) -> int:
        begun.append(job)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(job)
            raise
        return job

    running = asyncio.create_task(_pipeline(generate=generate, concurrency=3).run(range(9)))
    await becomes(lambda: len(begun) == 3)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(stopped) == [0, 1, 2]


async def test_metrics_tell_how_busy_the_stages_were() -> None:
    _, metrics = await _pipeline(generate=_slow_echo, concurrency=4).run(range(8))

    assert isinstance(metrics, PipelineMetrics)
    assert 0.5 < metrics.engine_busy_share <= 1.0
    assert 2.0 < metrics.engine_in_flight_mean <= 4.0
    assert set(metrics.as_dict()) >= {"engine_busy_share", "verify_busy_share", "queue_depth_max", "lost"}


async def test_long_jobs_keep_to_their_slots_and_short_ones_pass_them() -> None:
    inside: set[int] = set()
    most = 0
    order: list[int] = []

    async def generate(job: int) -> int:
        nonlocal most
        if job < 6:  # long
            inside.add(job)
            most = max(most, len(inside))
            await asyncio.sleep(0.2)
            inside.remove(job)
        order.append(job)
        return job

    pipeline = _pipeline(generate=generate, concurrency=8, long=lambda job: job < 6, long_slots=2)
    results, _ = await pipeline.run(range(12))

    assert most == 2
    assert sorted(order[:6]) == [6, 7, 8, 9, 10, 11]
    assert results == [f"done {job}" for job in range(12)]


async def test_long_slots_help_with_short_jobs_when_no_long_one_is_left() -> None:
    both = asyncio.Barrier(2)

    async def generate(job: int) -> int:
        if job:  # the two short jobs meet: one of them sits in the long job's slot
            await both.wait()
        return job

    pipeline = _pipeline(generate=generate, concurrency=2, long=lambda job: job == 0, long_slots=1)
    results, _ = await asyncio.wait_for(pipeline.run(range(3)), timeout=GUARD_S)

    assert results == ["done 0", "done 1", "done 2"]


@pytest.mark.parametrize("concurrency", [1, 2, 7])
async def test_all_long_jobs_are_done_whatever_the_concurrency(concurrency: int) -> None:
    pipeline = _pipeline(concurrency=concurrency, long=lambda job: job % 3 > 0, long_slots=3)
    results, _ = await asyncio.wait_for(pipeline.run(range(10)), timeout=GUARD_S)

    assert results == [f"done {job}" for job in range(10)]


async def test_each_job_has_its_own_deadline() -> None:
    async def generate(job: int) -> int:
        await asyncio.sleep(0.05)
        return job

    pipeline = _pipeline(generate=generate, deadline_s=lambda job: GUARD_S if job else 0.01)
    results, metrics = await pipeline.run(range(2))

    assert results == ["lost 0 generating", "done 1"]
    assert metrics.lost == 1


async def test_each_result_is_reported_as_it_comes() -> None:
    heard: list[str] = []

    await _pipeline(on_done=heard.append).run(range(4))

    assert sorted(heard) == ["done 0", "done 1", "done 2", "done 3"]


async def _echo(job: int) -> int:
    return job


async def _slow_echo(job: int) -> int:
    await asyncio.sleep(0.3)  # far longer than what comes before and after
    return job


async def _done(item: int) -> str:
    return f"done {item}"


def _pipeline(
    *,
    generate: Callable[[int], Awaitable[int]] = _echo,
    judge: Callable[[int], Awaitable[str]] = _done,
    concurrency: int = 4,
    verify_concurrency: int = 2,
    deadline_s: float | Callable[[int], float] = 30.0,
    on_done: Callable[[str], None] = lambda done: None,
    **more: Any,
) -> Pipeline[int, int, str]:
    return Pipeline(
        generate=generate,
        judge=judge,
        lose=lambda job, stage: f"lost {job} {stage}",
        concurrency=concurrency,
        verify_concurrency=verify_concurrency,
        deadline_s=deadline_s,
        on_done=on_done,
        **more,
    )
