"""Metric points: what a step's rollouts and its training measured."""

from collections.abc import Mapping

from apps.training.models import MetricPoint, Segment, TrainingRun
from domain.contracts import RolloutBatchResult, TrainSegmentResult


def draw_metrics(run: TrainingRun, segment: Segment, body: RolloutBatchResult) -> None:
    """Figures of a step's first draw. Refills are left out: they are drawn after looking at the
    rewards, and would bias every one of these."""
    metrics_record(
        run,
        segment.index,
        {
            "reward_mean": body.reward_mean,
            "pass_rate": body.pass_rate,
            "completion_tokens_mean": body.completion_tokens_mean,
            **{f"pipeline_{name}": value for name, value in body.pipeline.items()},
        },
    )


def training_metrics(
    run: TrainingRun, segment: Segment, body: TrainSegmentResult, *, trained_from: int
) -> None:
    """Figures of a step's training. ``trained_from`` is the policy version it started at.

    The trainer's mean reward covers refills too, so it gets a name of its own.
    """
    values: dict[str, float | None] = dict(body.metrics)
    if "reward_mean" in values:
        values["reward_mean_trained"] = values.pop("reward_mean")
    values |= {
        "groups_useful": float(segment.groups_useful),
        "policy_version": float(body.policy_version),
        "staleness": None if segment.policy_version is None else float(trained_from - segment.policy_version),
    }
    metrics_record(run, segment.index, values)


def metrics_record(run: TrainingRun, step: int, values: Mapping[str, float | None]) -> None:
    """Upsert; None is "not measured" and makes no row."""
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(run=run, step=step, name=name[:60], value=value)
            for name, value in values.items()
            if value is not None
        ],
        update_conflicts=True,
        unique_fields=["run", "name", "step"],
        update_fields=["value"],
    )
