"""What went through the gateway, and what users said of it afterwards."""

from typing import ClassVar

from django.db import models

from apps.core.models import Project
from apps.versions.models import ModelVersion, Release


class Inference(models.Model):
    """One operation through the gateway: ids and numbers. Its text, if sampled, is a Capture."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="inferences")
    operation = models.CharField(max_length=64, unique=True)
    family = models.CharField(max_length=100, blank=True)
    task_type = models.CharField(max_length=20, blank=True)
    unit = models.CharField(max_length=32)
    version = models.ForeignKey(ModelVersion, on_delete=models.SET_NULL, null=True, related_name="inferences")
    edition_kind = models.CharField(max_length=10, blank=True)
    release = models.ForeignKey(Release, on_delete=models.SET_NULL, null=True, related_name="inferences")
    segment = models.PositiveIntegerField(null=True)
    assigned_arm = models.CharField(max_length=10, blank=True)
    served_arm = models.CharField(max_length=10, blank=True)
    revision = models.PositiveIntegerField(null=True)
    status = models.PositiveIntegerField()
    error = models.CharField(max_length=60, blank=True)
    attempts = models.JSONField(default=list)
    streamed = models.BooleanField(default=False)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    ttft_ms = models.FloatField(null=True)
    latency_ms = models.FloatField(null=True)
    started_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-started_at", "-pk"]
        indexes: ClassVar = [models.Index(fields=["project", "-started_at"], name="inference_recent")]

    def __str__(self) -> str:
        return self.operation


class FeedbackSignal(models.Model):
    """A rating, comment or correction for an operation; it may arrive before the operation's row.

    ``content`` holds the anonymized comment and correction, ``raw`` their ciphertext until then.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="signals")
    external_id = models.CharField(max_length=120)
    operation = models.CharField(max_length=64, db_index=True)
    metric = models.CharField(max_length=60)
    value = models.JSONField(null=True)
    negative = models.BooleanField(default=False)
    has_correction = models.BooleanField(default=False)
    raw = models.BinaryField(null=True)
    content = models.JSONField(null=True)
    joined_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "external_id"], name="signal_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric} for {self.operation}"


class HeldExchange(models.Model):
    """Ciphertext of an operation that nobody asked to keep, held briefly in case feedback comes.

    It becomes a ``Capture`` when feedback is negative or corrects the answer, and is deleted at
    ``expires_at`` otherwise.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="held_exchanges")
    operation = models.CharField(max_length=64, unique=True)
    external_id = models.CharField(max_length=120)
    cluster = models.CharField(max_length=120, blank=True)
    raw = models.BinaryField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.operation
