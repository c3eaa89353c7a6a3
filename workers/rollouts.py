"""A rollout batch: groups of samples per task under one policy version, as one Parquet artifact.

Advantages are not computed here: they belong to the training step that consumes the groups.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from statistics import fmean

from domain.contracts import RolloutBatchResult, RunRolloutBatch, Sampling, TaskSpec, Trajectory
from domain.contracts.trajectory_table import RolloutInfo
from domain.grpo import ZERO_VARIANCE
from domain.seeds import episode_seed
from workers.context import Context, UnitRefused
from workers.episode import EpisodeJob
from workers.episode_batch import load_tasks, run_episodes
from workers.evidence import collectors_with
from workers.trajectory_file import trajectory_file

_PRIORITY = 10


class RolloutRefused(UnitRefused):
    """Rollouts for training need token ids and log-probabilities."""


def run_rollout_batch(message: RunRolloutBatch, ctx: Context) -> RolloutBatchResult:
    """Sample every selected task ``group_size`` times; raises ``RolloutRefused`` for a target
    that shows no tokens."""
    if message.target.protocol != "tokens":
        raise RolloutRefused("rollouts need an engine that returns token ids; this target speaks chat only")
    jobs = _jobs(load_tasks(ctx.store, message.tasks_digest, message.indexes), message)
    trajectories, figures = asyncio.run(
        run_episodes(
            jobs,
            target=message.target,
            sampling=Sampling(temperature=message.temperature, seed=message.seed, samples=message.group_size),
            concurrency=message.concurrency,
            store=ctx.store,
            collectors=collectors_with(message.judges),
            progress=ctx.progress,
            policy_version=message.policy_version,
            priority=_PRIORITY,
            retire=message.retire,
        )
    )
    info = RolloutInfo(
        policy_version=message.policy_version,
        temperature=message.temperature,
        model=message.target.model,
        group_size=message.group_size,
        seed=message.seed,
    )
    canaries = {job.task.id for job in jobs if job.task.tags.get("canary")}
    return _summary(trajectories, message, canaries).model_copy(
        update={
            "trajectories_digest": ctx.store.put(trajectory_file(trajectories, info)),
            "pipeline": figures,
        }
    )


def _jobs(tasks: Sequence[TaskSpec], message: RunRolloutBatch) -> list[EpisodeJob]:
    """A task drawn twice makes two groups with seeds of their own."""
    seen: Counter[str] = Counter()
    jobs = []
    for task in tasks:
        group = f"{task.id}@{seen[task.id]}"
        seen[task.id] += 1
        salt = f"{message.policy_version}:{group}"
        jobs += [
            EpisodeJob(
                task=task,
                sample=sample,
                seed=episode_seed(message.seed, task.id, sample, salt=salt),
                group=group,
            )
            for sample in range(message.group_size)
        ]
    return jobs


def _summary(
    trajectories: Sequence[Trajectory], message: RunRolloutBatch, canaries: Set[str]
) -> RolloutBatchResult:
    groups: dict[str, list[Trajectory]] = {}
    families: dict[str, list[Trajectory]] = {}
    tasks: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.group, []).append(trajectory)
        families.setdefault(trajectory.family, []).append(trajectory)
        tasks.setdefault(trajectory.task_id, []).append(trajectory)
    return RolloutBatchResult(
        trajectories_digest="",
        policy_version=message.policy_version,
        counts={**Counter(t.state for t in trajectories), **_watched(trajectories, canaries)},
        reward_mean=_mean(_rewards(trajectories)),
        pass_rate=_pass_rate(trajectories),
        completion_tokens_mean=_mean([t.completion_tokens for t in trajectories if t.steps]),
        groups_zero_variance=sum(_is_flat(_rewards(group)) for group in groups.values()),
        families={
            family: {
                "episodes": len(part),
                "scored": len(_rewards(part)),
                "pass_rate": _pass_rate(part),
                "reward_mean": _mean(_rewards(part)),
                **_watched(part, canaries),
            }
            for family, part in families.items()
        },
        tasks={task_id: _pass_rate(part) for task_id, part in tasks.items()},
    )


def _watched(trajectories: Sequence[Trajectory], canaries: Set[str]) -> dict[str, int]:
    """What is watched while training: how many look like gaming, how many passes the hidden verifier saw
    and how many of them failed it, impossible tasks that were decided and those that were passed. What
    did not occur is left out."""
    hidden = [t.hidden.state for t in trajectories if t.hidden is not None]
    impossible = [t.state for t in trajectories if t.task_id in canaries and t.state in ("passed", "failed")]
    found = {
        "flagged": sum(bool(t.flags) for t in trajectories),
        "hidden_checked": len(hidden) - hidden.count("unscored"),
        "hidden_failed": hidden.count("failed"),
        "canaries": len(impossible),
        "canary_passes": impossible.count("passed"),
    }
    return {name: number for name, number in found.items() if number}


def _rewards(trajectories: Iterable[Trajectory]) -> list[float]:
    return [trajectory.reward for trajectory in trajectories if trajectory.reward is not None]


def _pass_rate(trajectories: Sequence[Trajectory]) -> float | None:
    """Passed of those that were decided; None when none was."""
    return _mean([float(t.state == "passed") for t in trajectories if t.state in ("passed", "failed")])


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _is_flat(rewards: Sequence[float]) -> bool:
    """Nothing to learn from: every answer was as good as every other."""
    return len(rewards) >= 2 and max(rewards) - min(rewards) < ZERO_VARIANCE
