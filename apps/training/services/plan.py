"""The plan of a run: rollouts ahead of training by the staleness limit.

The planner holds no state of its own. What exists (segments, their rounds, the newest policy) says
what comes next, so it may be called at any time, twice, or after a crash.
"""

import random
from functools import lru_cache

import numpy as np

from apps.core.models import WorkUnit
from apps.core.units import unit_create
from apps.training.config import RunConfig
from apps.training.models import Segment, TrainingRun
from apps.training.services.adapters import adapters_to_retire, rollout_target
from apps.training.services.admission import names_of, verifiers_not_admitted
from apps.training.services.ending import run_finish, run_hold
from apps.versions.selectors import judge_targets
from artifacts import get_store
from domain.contracts import RunRolloutBatch, RunTrainSegment
from domain.curriculum import Curriculum


def run_plan(*, run: TrainingRun) -> None:
    """Plan what is due. The caller holds the run's lock."""
    if run.state != TrainingRun.State.RUNNING:
        return
    done = run.segments.filter(state=Segment.State.DONE).count()
    if done >= run.steps:
        run_finish(run=run)
        return
    refused = verifiers_not_admitted(run.dataset)
    if refused:
        run_hold(run=run, reason=f"No longer admitted: {names_of(refused)}. Run its gauntlet, then resume.")
        return
    config = RunConfig.model_validate(run.config)
    segments = {segment.index: segment for segment in run.segments.exclude(state=Segment.State.DONE)}
    # Rollouts may be ahead of training by `staleness` versions.
    for index in range(done, min(done + config.train.staleness + 1, run.steps)):
        segment = segments.get(index) or Segment.objects.create(run=run, index=index)
        segments[index] = segment
        if segment.state == Segment.State.ROLLOUTS:
            _plan_rollouts(run, segment, config)
    head = segments[done]
    if head.state == Segment.State.TRAINING:
        _plan_training(run, head, config)


def curriculum_of(run: TrainingRun) -> Curriculum:
    return Curriculum.from_dict(run.curriculum) if run.curriculum else Curriculum()


def rollout_key(run: TrainingRun, segment: Segment, round_number: int) -> str:
    """One unit per round and restart. The key makes planning twice harmless."""
    return f"rollout:{run.pk}:{segment.index}:{round_number}:{run.restarts}"


def _plan_rollouts(run: TrainingRun, segment: Segment, config: RunConfig) -> None:
    round_number = segment.rounds
    key = rollout_key(run, segment, round_number)
    if WorkUnit.objects.filter(key=key).exists():
        return
    # The seed decides everything random of a round, so that an interrupted one is the same again.
    redrawn = f":{segment.redraws}" if segment.redraws else ""
    seed = random.Random(f"{run.seed}:{segment.index}:{round_number}{redrawn}").getrandbits(48)
    if len(segment.draws) <= round_number:
        wanted = config.groups - segment.groups_useful
        segment.draws = [*segment.draws, _choose(run, wanted, seed, segment.draws)]
        segment.save(update_fields=["draws"])
    unit_create(
        project=run.project,
        kind="rollout_batch",
        key=key,
        owner=run.lineage_key,
        queue="rollout",
        priority=0,
        message=RunRolloutBatch(
            tasks_digest=run.dataset.tasks_digest,
            indexes=tuple(segment.draws[round_number]),
            group_size=config.group_size,
            temperature=config.train.temperature,
            seed=seed,
            target=rollout_target(run),
            policy_version=run.policy_version,
            concurrency=config.concurrency,
            retire=adapters_to_retire(run),
            judges=judge_targets(run.project, run.lineage_key),
        ),
    )


def _plan_training(run: TrainingRun, segment: Segment, config: RunConfig) -> None:
    unit_create(
        project=run.project,
        kind="train_segment",
        key=f"train:{run.pk}:{segment.index}:{run.restarts}",
        owner=run.lineage_key,
        queue="train",
        priority=1,
        message=RunTrainSegment(
            run_slug=run.slug,
            segment=segment.index,
            policy_version=run.policy_version,
            base_model=run.parent.base.path,
            base_digest=run.parent.base.digest,
            init_adapter_digest=run.parent.adapter_digest,
            checkpoint_digest=run.checkpoint_digest,
            rollout_digests=tuple(segment.rollout_digests),
            config={**config.train.model_dump(mode="json"), "seed": run.seed},
        ),
    )


def _choose(run: TrainingRun, count: int, seed: int, draws: list[list[int]]) -> list[int]:
    """Lines of the dataset, drawn by the curriculum; a refill avoids what the step already has."""
    lines = _task_lines(run.dataset.tasks_digest)
    taken = {line for draw in draws for line in draw}
    keys = [key for key, line in lines.items() if line not in taken] or list(lines)
    drawn = curriculum_of(run).draw(keys, count, np.random.default_rng(seed))
    return [lines[key] for key in drawn]


@lru_cache(maxsize=8)
def _task_lines(digest: str) -> dict[str, int]:
    """Task id -> its line; the artifact of a digest never changes."""
    return {str(row["id"]): line for line, row in enumerate(get_store().iter_jsonl(digest))}
