"""Releases and what they saw."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.versions.models.registry import ModelVersion


class Release(models.Model):
    """A canary of ``candidate`` against ``control``. ``plan`` is a ``domain.gates`` plan as JSON."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        PROMOTED = "promoted", "Promoted"
        ROLLED_BACK = "rolled_back", "Rolled back"
        ABORTED = "aborted", "Aborted"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="releases")
    candidate = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="releases")
    control = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    plan = models.JSONField()
    salt = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=State.choices, default=State.RUNNING)
    paused = models.BooleanField(default=False)
    # Until every engine holds the candidate's adapter, no traffic goes to it.
    warming = models.BooleanField(default=True)
    step_index = models.PositiveIntegerField(default=0)
    verdict = models.CharField(max_length=10, default="hold")
    reasons = models.JSONField(default=list)
    evidence = models.JSONField(default=dict)  # the last decision's figures
    units_at_end = models.PositiveIntegerField(null=True, blank=True)
    started_by = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    step_started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(state="running"), name="release_one_running"
            ),
            models.UniqueConstraint(fields=["project", "number"], name="release_number_once"),
        ]

    def __str__(self) -> str:
        return f"release {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("versions:release", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"versions.release:{self.pk}"

    @property
    def segment(self) -> int:
        """The constant-weight segment that traffic falls into now: one per step."""
        return self.step_index

    @property
    def weight(self) -> float:
        """Share of units on the canary now, in [0, 1]."""
        if self.state != self.State.RUNNING or self.warming:
            return 0.0
        return float(self.plan["steps"][self.step_index]["weight"])


class ReleaseUnit(models.Model):
    """One unit of traffic (a session, user or key, as keyed hash) in one constant-weight segment."""

    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="units")
    segment = models.PositiveIntegerField()
    unit = models.CharField(max_length=32)
    arm = models.CharField(max_length=10)  # control | canary, as assigned
    operations = models.PositiveIntegerField(default=0)
    failed = models.BooleanField(default=False)
    failure = models.CharField(max_length=40, blank=True)
    first_seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            # A unit counts in the segment where it was first seen, once for the whole release.
            models.UniqueConstraint(fields=["release", "unit"], name="release_unit_once"),
            models.CheckConstraint(condition=Q(arm__in=["control", "canary"]), name="release_unit_arm_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["release", "segment", "arm", "failed"], name="release_unit_counts")
        ]

    def __str__(self) -> str:
        return f"{self.arm} unit of {self.release}"


class ReleasePoint(models.Model):
    """One evaluation of a release's gate, for the chart and the record."""

    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="points")
    segment = models.PositiveIntegerField()
    weight = models.FloatField()
    units = models.PositiveIntegerField()
    e_value = models.FloatField(null=True)
    difference_low = models.FloatField(null=True)
    difference_high = models.FloatField(null=True)
    verdict = models.CharField(max_length=10)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"{self.release} at {self.units} units"
