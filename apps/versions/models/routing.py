"""A project's routing: its rules, and the numbered snapshots that gateways follow."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from apps.core.models import Project
from apps.versions.models.registry import EditionKind


def default_task_types() -> dict[str, str]:
    return {"interactive": "high_speed", "quality": "standard", "batch": "standard"}


def default_failure_signals() -> list[str]:
    return ["error", "negative_feedback", "correction"]


class RoutingRules(models.Model):
    """What people may set about routing; each change makes a ``RoutingRevision``."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="routing_rules")
    task_types = models.JSONField(default=default_task_types)
    default_edition = models.CharField(
        max_length=10, choices=EditionKind.choices, default=EditionKind.STANDARD
    )
    capture_failures = models.BooleanField(default=True)
    capture_success_rate = models.FloatField(default=0.05)
    failure_signals = models.JSONField(default=default_failure_signals)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(capture_success_rate__gte=0.0, capture_success_rate__lte=1.0),
                name="routing_capture_rate_is_a_share",
            )
        ]

    def __str__(self) -> str:
        return f"routing rules of {self.project}"


class RoutingRevision(models.Model):
    """Everything the gateway needs, as one immutable numbered snapshot (``domain.routing``)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="routing_revisions")
    number = models.PositiveIntegerField()
    snapshot = models.JSONField()
    actor = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="routing_number_once")
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"
