"""The episodes of one unit, run together: what evaluations and rollouts share."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from artifacts import ArtifactStore
from domain.contracts import EngineTarget, Sampling, TaskSpec, Trajectory
from workers.answer_journal import AnswerJournal
from workers.engine.client import EngineClient
from workers.environments import HOLDS_SANDBOX, TaskRefused, make_environment, turns_of
from workers.episode import HIDDEN_SHARE, Draft, EpisodeJob, generate, judge, lost
from workers.evidence import Collector
from workers.pipeline import Pipeline, PipelineMetrics
from workers.play import Meters, Policy
from workers.remembering import RememberingPolicy
from workers.response_cache import ResponseCache
from workers.sandbox.pool_stats import PoolStats
from workers.sandbox.worker_pool import worker_pool
from workers.served_policy import ServedPolicy

log = logging.getLogger(__name__)

_ATTEMPTS = 2  # of an episode whose environment breaks down; then it is an error without reward
_PROGRESS_EVERY_S = 0.5
_JUDGES = 4  # at once, or as many as there are processors
_LONG_SLOTS = 32  # episodes that hold a sandbox at once, by default: half of a pool's
_SANDBOX_FIGURES = frozenset(
    f"sandbox_{name}"
    for name in ("busy_share", "checkouts", "wait_mean_s", "wait_max_s", "replaced", "leaked", "refused")
)


def load_tasks(store: ArtifactStore, digest: str, indexes: Sequence[int]) -> list[TaskSpec]:
    """The selected lines of a JSONL artifact of tasks, in the order of ``indexes``."""
    lines = _lines(store, digest)
    return [TaskSpec.model_validate_json(lines[index]) for index in indexes]


@lru_cache(maxsize=2)
def _lines(store: ArtifactStore, digest: str) -> list[bytes]:
    """All lines, kept for the next batch of the same run: a suite of a hundred thousand cases must not be
    read and checked for each of its batches."""
    return [line for line in store.get(digest).split(b"\n") if line]


async def run_episodes(
    jobs: Sequence[EpisodeJob],
    *,
    target: EngineTarget,
    sampling: Sampling,
    concurrency: int,
    store: ArtifactStore,
    collectors: Mapping[str, Collector],
    progress: Callable[[dict[str, Any]], None],
    policy_version: int = 0,
    priority: int = 0,
    deadline_s: float = 0.0,
    hidden_share: float = HIDDEN_SHARE,
    retire: Sequence[str] = (),
    journal: AnswerJournal | None = None,
    cache: ResponseCache | None = None,
) -> tuple[list[Trajectory], dict[str, float]]:
    """One trajectory for each job, in order, and figures of how the batch went (those of
    ``PipelineMetrics``, ``environment_busy_share``, and ``sandbox_…`` where sandboxes were used).
    ``deadline_s`` for each part of a turn, by default long
    enough for a request to be tried again; an episode of several turns has half as much again for each
    further one. Adapters in ``retire`` are unloaded first. Answers are looked for in ``journal`` and
    ``cache``, and kept there."""
    external = target.max_attempts is not None
    patience_s = (target.deadline_s or 0.0) + target.timeout_s if external else 2.5 * target.timeout_s
    deadline_s = deadline_s or patience_s
    meters = Meters()

    def time_of(job: EpisodeJob) -> float:
        try:
            turns = turns_of(job.task)
        except TaskRefused:  # the episode will say so
            turns = 1
        return deadline_s * (1 + (turns - 1) / 2)

    report = _Progress(len(jobs), progress)
    # The gateway ends an attempt at an endpoint, and the deadline all of them: no third clock is needed.
    timeout_s = 0.0 if external else target.timeout_s
    async with EngineClient(target.base_url, target.token, timeout_s, once=external) as client:
        policy = ServedPolicy(client, target, store=store, priority=priority)
        await policy.retire(retire)

        def remembering(job: EpisodeJob) -> Policy:
            if journal is None and cache is None:
                return policy
            return RememberingPolicy(policy, sample=job.sample, journal=journal, cache=cache)

        async def make(job: EpisodeJob) -> Draft:
            for _ in range(_ATTEMPTS):
                draft = await generate(
                    job,
                    policy=remembering(job),
                    sampling=sampling,
                    environment=make_environment(job.task.environment),
                    policy_version=policy_version,
                    step_s=deadline_s,
                    meters=meters,
                )
                if not draft.broken:
                    break
            return draft

        async def finish(draft: Draft) -> Trajectory:
            return await judge(draft, collectors=collectors, hidden_share=hidden_share)

        def lose(job: EpisodeJob, stage: str) -> Trajectory:
            log.warning("episode %s#%d was lost while %s", job.group, job.sample, stage)
            return lost(job, stage, deadline_s=time_of(job))

        pipeline = Pipeline(
            generate=make,
            judge=finish,
            lose=lose,
            concurrency=concurrency,
            deadline_s=time_of,
            verify_concurrency=max(_JUDGES, os.cpu_count() or 1),
            on_done=report.add,
            long=lambda job: job.task.environment in HOLDS_SANDBOX,
            long_slots=int(os.environ.get("FLYWHEEL_LONG_EPISODES") or _LONG_SLOTS),
        )
        before = worker_pool().stats()
        trajectories, metrics = await pipeline.run(jobs)
        used = worker_pool().stats().since(before)
    return trajectories, _figures(metrics, meters, used)


def _figures(metrics: PipelineMetrics, meters: Meters, used: PoolStats) -> dict[str, float]:
    """Busy shares are of the batch's time; the sandboxes' share is of their places too."""
    sandboxes = used.as_dict() if used.checkouts else {}
    return {
        **metrics.as_dict(),
        "engine_busy_share": round(meters.engine.share(metrics.wall_s), 6),
        "engine_in_flight_mean": round(meters.engine.job_s / metrics.wall_s, 6),
        "environment_busy_share": round(meters.environment.share(metrics.wall_s), 6),
        **{name: value for name, value in sandboxes.items() if name in _SANDBOX_FIGURES},
    }


class _Progress:
    """Counts states and reports at most twice a second, so that a batch of thousands is quiet."""

    def __init__(self, total: int, report: Callable[[dict[str, Any]], None]) -> None:
        self._total, self._report = total, report
        self._counts: dict[str, int] = {}
        self._next = 0.0

    def add(self, done: Trajectory) -> None:
        self._counts[done.state] = self._counts.get(done.state, 0) + 1
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_EVERY_S
            self._report(
                {"done": sum(self._counts.values()), "total": self._total, "counts": dict(self._counts)}
            )
