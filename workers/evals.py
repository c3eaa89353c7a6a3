"""An evaluation batch: episodes that are not trained on."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence

from artifacts import ArtifactStore
from domain.contracts import EpisodeResult, EvalBatchResult, RunEvalBatch, Sampling, TaskSpec, Trajectory
from domain.seeds import episode_seed
from workers.answer_journal import AnswerJournal, journals_sweep
from workers.context import Context
from workers.engine.limits import useful_concurrency
from workers.environments import SINGLE
from workers.episode import EpisodeJob, result_of
from workers.episode_batch import load_tasks, run_episodes
from workers.evidence import collectors_with
from workers.response_cache import ResponseCache

_PRIORITY = 5  # behind users' traffic, before training's rollouts
_SWEEP_EVERY_S = 3600.0
_TOKENS = {"token_ids", "logprobs", "mask"}
_swept_at = -_SWEEP_EVERY_S  # of this process, monotonic


def run_eval_batch(message: RunEvalBatch, ctx: Context) -> EvalBatchResult:
    """Run the selected cases, each ``sampling.samples`` times; results as a JSONL artifact of
    ``EpisodeResult`` in the order of ``indexes``, samples of a case together.

    Answers that another attempt at these cases left are judged, not generated again."""
    sampling = message.sampling
    tasks = [
        _as_asked(task, sampling) for task in load_tasks(ctx.store, message.tasks_digest, message.indexes)
    ]
    jobs = [
        EpisodeJob(task=task, sample=sample, seed=episode_seed(sampling.seed, task.id, sample), group=task.id)
        for task in tasks
        for sample in range(sampling.samples)
    ]
    journal = AnswerJournal(ctx.store, message)
    journal.load()
    cache = ResponseCache.from_environment() if message.cache else None
    with contextlib.closing(journal):
        trajectories, figures = asyncio.run(
            run_episodes(
                jobs,
                target=message.target,
                sampling=sampling,
                concurrency=useful_concurrency(message.target, tasks, message.concurrency),
                store=ctx.store,
                collectors=collectors_with(message.judges),
                progress=ctx.progress,
                priority=_PRIORITY,
                journal=journal,
                cache=cache,
            )
        )
    results = _with_turns(trajectories, tasks, ctx.store)
    ctx.when_reported(journal.remove)
    ctx.when_reported(lambda: _sweep(ctx.store, cache))
    return EvalBatchResult(
        results_digest=ctx.store.put_jsonl(result.model_dump(mode="json") for result in results),
        counts=dict(Counter(result.state for result in results)),
        pipeline=figures,
    )


def _with_turns(
    trajectories: Sequence[Trajectory], tasks: Sequence[TaskSpec], store: ArtifactStore
) -> list[EpisodeResult]:
    """The results; those in environments with turns name the line that holds what was done."""
    in_turns = {task.id for task in tasks if task.environment != SINGLE}
    results = [result_of(trajectory) for trajectory in trajectories]
    places = [at for at, trajectory in enumerate(trajectories) if trajectory.task_id in in_turns]
    if not places:
        return results
    digest = store.put_jsonl(
        [step.model_dump(mode="json", exclude=_TOKENS) for step in trajectories[at].steps] for at in places
    )
    for line, at in enumerate(places):
        results[at] = results[at].model_copy(update={"turns_digest": digest, "turns_line": line})
    return results


def _as_asked(task: TaskSpec, sampling: Sampling) -> TaskSpec:
    """The task with the run's own limit of tokens, where it has one."""
    if sampling.max_tokens is None:
        return task
    return task.model_copy(update={"max_tokens": sampling.max_tokens})


def _sweep(store: ArtifactStore, cache: ResponseCache | None) -> None:
    """Now and then, remove what nobody came back for."""
    global _swept_at
    if cache is not None:
        cache.sweep()
    if time.monotonic() - _swept_at >= _SWEEP_EVERY_S:
        _swept_at = time.monotonic()
        journals_sweep(store)
