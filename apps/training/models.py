"""Training runs, their segments, an index of trajectories, and metric points."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.feedback.models import Dataset
from apps.versions.models import ModelVersion


class TrainingRun(models.Model):
    """GRPO with LoRA from ``parent`` on a dataset. ``config`` is a ``RunConfig`` as JSON.

    The planner keeps the plan in these columns, so that a run continues from the database alone:
    ``policy_version`` is the newest finished adapter (0 is the parent).
    """

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="training_runs")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60, unique=True)
    parent = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="training_runs")
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="training_runs")
    seed = models.BigIntegerField(default=1)
    config = models.JSONField()
    steps = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    policy_version = models.PositiveIntegerField(default=0)
    checkpoint_digest = models.CharField(max_length=64, blank=True)
    adapter_digest = models.CharField(max_length=64, blank=True)
    adapter_name = models.CharField(max_length=120, blank=True)
    curriculum = models.JSONField(default=dict)
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="produced_by"
    )
    error = models.TextField(blank=True)
    restarts = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(steps__gt=0), name="training_steps_positive"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("training:run", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"training.run:{self.pk}"


class Segment(models.Model):
    """One step of the plan: rounds of rollouts, then training on them.

    ``draws`` holds one list of dataset lines per round, fixed when the round is first planned: a round
    that was interrupted asks the same prompts again, so none is skipped and none asked twice.
    ``policy_version`` is that of the oldest rollouts. ``redraws`` counts batches that the trainer
    refused and that were thrown away.
    """

    class State(models.TextChoices):
        ROLLOUTS = "rollouts", "Generating"
        TRAINING = "training", "Training"
        DONE = "done", "Done"

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="segments")
    index = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.ROLLOUTS)
    draws = models.JSONField(default=list)
    rounds = models.PositiveIntegerField(default=0)
    redraws = models.PositiveIntegerField(default=0)
    rollout_digests = models.JSONField(default=list)
    policy_version = models.PositiveIntegerField(null=True)
    groups_useful = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True)
    skipped = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["index"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "index"], name="segment_once")]

    def __str__(self) -> str:
        return f"segment {self.index} of {self.run_id}"


class TrajectoryQuerySet(models.QuerySet["Trajectory"]):
    def flagged(self) -> "TrajectoryQuerySet":
        """What looks like gaming."""
        return self.filter(flagged=True)

    def clean(self) -> "TrajectoryQuerySet":
        """What may feed supervised data: passed, not flagged, and not refuted by the hidden verifier."""
        return self.filter(state="passed", flagged=False).exclude(hidden="failed")


class Trajectory(models.Model):
    """Index row of one trajectory; its tokens are row ``row`` of the Parquet artifact ``digest``.

    ``flags`` are the detectors that fired and "cut off"; ``flagged`` says that a detector did.
    ``hidden`` is the word of the stricter hidden verifier, "" where it was not asked. ``canary`` marks
    an impossible task: any pass of it is a cheat.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="trajectories")
    digest = models.CharField(max_length=64)
    row = models.PositiveIntegerField()
    step = models.PositiveIntegerField()  # index of the segment it was sampled for
    policy_version = models.PositiveIntegerField()
    task_key = models.CharField(max_length=200)
    family = models.CharField(max_length=100)
    sample = models.PositiveIntegerField()
    state = models.CharField(max_length=10)
    reward = models.FloatField(null=True)
    tokens = models.PositiveIntegerField(default=0)
    turns = models.PositiveIntegerField(default=1)
    flags = models.JSONField(default=list)
    flagged = models.BooleanField(default=False)
    hidden = models.CharField(max_length=10, blank=True)
    canary = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TrajectoryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        verbose_name_plural = "trajectories"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "digest", "row"], name="trajectory_row_once")
        ]
        indexes: ClassVar = [models.Index(fields=["run", "-id"], name="trajectory_recent")]

    def __str__(self) -> str:
        return f"{self.task_key} sample {self.sample}"

    def get_absolute_url(self) -> str:
        return reverse("training:trajectory", args=[self.pk])


class MetricPoint(models.Model):
    """One finite number of one step. What could not be measured has no row."""

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="metrics")
    step = models.PositiveIntegerField()
    name = models.CharField(max_length=60)
    value = models.FloatField()

    class Meta:
        ordering: ClassVar = ["step"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "name", "step"], name="metric_once")]

    def __str__(self) -> str:
        return f"{self.name}@{self.step}"
