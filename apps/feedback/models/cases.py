"""Failures that people look at, and what they decide about them."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.feedback.models.captures import Capture


class LabelSchema(models.Model):
    """Failure kinds and severities of a project, as numbered immutable revisions."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="label_schemas")
    number = models.PositiveIntegerField()
    kinds = models.JSONField()  # [{"slug", "title", "key"}]
    severities = models.JSONField()
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="labelschema_number_once")
        ]

    def __str__(self) -> str:
        return f"schema {self.number}"


class FailureCase(models.Model):
    """A failure that people look at. Text lives in its capture (anonymized)."""

    class State(models.TextChoices):
        NEW = "new", "To label"
        LABELLED = "labelled", "Labelled"
        ASSET = "asset", "Became a task"
        DISMISSED = "dismissed", "Dismissed"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="cases")
    capture = models.OneToOneField(Capture, on_delete=models.CASCADE, related_name="case")
    family = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.NEW)
    title = models.CharField(max_length=160)
    group_key = models.CharField(max_length=64, blank=True)
    # MinHash of the anonymized prompt; kept by the first case of each group only.
    signature = models.BinaryField(null=True, blank=True)
    priority = models.IntegerField(default=0)
    skips = models.PositiveIntegerField(default=0)  # a skipped case goes behind the others
    kind = models.CharField(max_length=60, blank=True)  # of the latest label in force
    severity = models.CharField(max_length=20, blank=True)
    leased_by = models.CharField(max_length=150, blank=True)  # the actor's name: a person or a key
    lease_token = models.CharField(max_length=32, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["project", "state", "skips", "-priority", "id"], name="case_queue"),
            models.Index(fields=["project", "group_key"], name="case_group"),
        ]

    def __str__(self) -> str:
        return f"case {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("feedback:case", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"feedback.case:{self.pk}"


class Label(models.Model):
    """One decision about a case. History is kept: an undone or replaced label stays as a row."""

    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="labels")
    schema_number = models.PositiveIntegerField()
    kind = models.CharField(max_length=60)
    severity = models.CharField(max_length=20)
    correction = models.TextField(blank=True)
    note = models.TextField(blank=True)
    by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["case", "by"], condition=Q(undone_at=None), name="label_one_in_force"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.severity})"
