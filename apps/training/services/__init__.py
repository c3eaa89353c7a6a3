"""Writes of training: the run's life, its plan, and what workers report."""

from apps.training.services.plan import run_plan
from apps.training.services.reports import (
    rollout_batch_failed,
    rollout_batch_finished,
    train_segment_failed,
    train_segment_finished,
)
from apps.training.services.runs import run_cancel, run_create, run_pause, run_resume, run_start

__all__ = [
    "rollout_batch_failed",
    "rollout_batch_finished",
    "run_cancel",
    "run_create",
    "run_pause",
    "run_plan",
    "run_resume",
    "run_start",
    "train_segment_failed",
    "train_segment_finished",
]
