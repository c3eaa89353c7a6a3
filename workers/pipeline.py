"""Many episodes at once: generation and judging as decoupled stages with bounded queues.

While one episode's program runs in a sandbox, the engine answers others; neither waits for the
other unless a queue is full. Every job has one deadline over all its stages, so that a reply
that never comes costs one job and never the batch. Long jobs have slots of their own, few enough for
what they hold meanwhile; short ones fill the rest, and long slots too once no long job is left.
Leaves out what a job is: stages are given.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Draft = TypeVar("Draft")
Done = TypeVar("Done")


@dataclass(frozen=True)
class PipelineMetrics:
    """Shares are of the batch's wall time, in [0, 1]; depths and in-flight counts are numbers of jobs."""

    wall_s: float
    engine_busy_share: float  # at least one job in the generation stage
    engine_in_flight_mean: float
    verify_busy_share: float
    queue_depth_max: int
    lost: int  # jobs ended by their deadline

    def as_dict(self) -> dict[str, float]:
        return {name: round(float(value), 6) for name, value in vars(self).items()}


@dataclass
class Meter:
    """Integrates over time how many jobs a stage holds."""

    started: float = field(default_factory=time.monotonic)
    busy_s: float = 0.0
    job_s: float = 0.0
    inside: int = 0
    _since: float = field(default_factory=time.monotonic)

    def move(self, change: int) -> None:
        now = time.monotonic()
        self.busy_s += (now - self._since) * bool(self.inside)
        self.job_s += (now - self._since) * self.inside
        self.inside, self._since = self.inside + change, now

    @contextmanager
    def busy(self) -> Iterator[None]:
        """One job is inside."""
        self.move(1)
        try:
            yield
        finally:
            self.move(-1)

    def share(self, wall_s: float) -> float:
        """Share of ``wall_s`` in which anything was inside, in [0, 1]."""
        self.move(0)
        return min(1.0, self.busy_s / max(wall_s, 1e-9))


@dataclass(frozen=True)
class Pipeline(Generic[Job, Draft, Done]):
    """``generate`` makes a draft of a job, ``judge`` finishes it, ``lose`` says what a job is that
    ran out of time, given the stage it was in. ``on_done`` hears each result as it comes. ``deadline_s``
    is a job's time from the moment its generation starts; at most ``long_slots`` jobs for which ``long``
    is true are generated at once."""

    generate: Callable[[Job], Awaitable[Draft]]
    judge: Callable[[Draft], Awaitable[Done]]
    lose: Callable[[Job, str], Done]
    concurrency: int
    deadline_s: float | Callable[[Job], float]
    verify_concurrency: int = 4
    on_done: Callable[[Done], None] = lambda done: None
    long: Callable[[Job], bool] = lambda job: False
    long_slots: int = 32

    async def run(self, jobs: Sequence[Job]) -> tuple[list[Done], PipelineMetrics]:
        """Every job's result in the order of ``jobs``. An exception of a stage that is no
        timeout ends the batch: all other jobs are cancelled and it rises, as does a cancel."""
        state = _Batch(self, list(jobs))
        try:
            async with asyncio.TaskGroup() as group:
                makers = [group.create_task(state.make(*lanes)) for lanes in state.lanes()]
                for _ in range(min(self.verify_concurrency, len(jobs))):
                    group.create_task(state.finish())
                group.create_task(state.close_after(makers))
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        return [state.results[index] for index in range(len(jobs))], state.metrics()


class _Batch(Generic[Job, Draft, Done]):
    """One run of a pipeline."""

    def __init__(self, pipeline: Pipeline[Job, Draft, Done], jobs: list[Job]) -> None:
        self._pipeline = pipeline
        self._jobs = jobs
        long = [pipeline.long(job) for job in jobs]
        self._long = deque(index for index, is_long in enumerate(long) if is_long)
        self._short = deque(index for index, is_long in enumerate(long) if not is_long)
        # As many drafts may wait as jobs may be made: a slow judge then holds generation back.
        self._drafts: asyncio.Queue[tuple[int, Draft, float] | None] = asyncio.Queue(
            max(1, pipeline.concurrency)
        )
        self._engine, self._verify = Meter(), Meter()
        self._depth_max = 0
        self._lost = 0
        self.results: dict[int, Done] = {}

    def lanes(self) -> list[tuple[deque[int], ...]]:
        """For each maker, where it takes its jobs from, in this order."""
        room, most = max(1, self._pipeline.concurrency), max(1, self._pipeline.long_slots)
        # Half at least for the short ones where there are both: they are what keeps the engine busy.
        share = room if not self._short else max(1, room // 2)
        longs = min(len(self._long), most, share)
        shorts = min(room - longs, len(self._short))
        return [(self._long, self._short)] * longs + [(self._short,)] * shorts

    async def make(self, *lanes: deque[int]) -> None:
        while lane := next((lane for lane in lanes if lane), None):
            index = lane.popleft()
            deadline_s = self._deadline_s(index)
            deadline = time.monotonic() + deadline_s
            try:
                with self._engine.busy():
                    async with asyncio.timeout(deadline_s):
                        draft = await self._pipeline.generate(self._jobs[index])
            except TimeoutError:
                self._lose(index, "generating")
                continue
            await self._drafts.put((index, draft, deadline))
            self._depth_max = max(self._depth_max, self._drafts.qsize())

    async def finish(self) -> None:
        while (item := await self._drafts.get()) is not None:
            index, draft, deadline = item
            with self._verify.busy():
                try:
                    async with asyncio.timeout(deadline - time.monotonic()):
                        self._settle(index, await self._pipeline.judge(draft))
                except TimeoutError:
                    self._lose(index, "judging")
        await self._drafts.put(None)  # wake the next judge

    async def close_after(self, makers: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*makers)
        await self._drafts.put(None)

    def metrics(self) -> PipelineMetrics:
        wall_s = max(time.monotonic() - self._engine.started, 1e-9)
        return PipelineMetrics(
            wall_s=wall_s,
            engine_busy_share=self._engine.share(wall_s),
            engine_in_flight_mean=self._engine.job_s / wall_s,
            verify_busy_share=self._verify.share(wall_s),
            queue_depth_max=self._depth_max,
            lost=self._lost,
        )

    def _deadline_s(self, index: int) -> float:
        limit = self._pipeline.deadline_s
        return limit(self._jobs[index]) if callable(limit) else limit

    def _settle(self, index: int, done: Done) -> None:
        self.results[index] = done
        self._pipeline.on_done(done)

    def _lose(self, index: int, stage: str) -> None:
        self._lost += 1
        self._settle(index, self._pipeline.lose(self._jobs[index], stage))


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first real error inside nested groups."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
