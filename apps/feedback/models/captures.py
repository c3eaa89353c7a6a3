"""Captured text, in two forms only: encrypted (``raw``, until anonymized or expired) and anonymized
(``content``). Nothing else in the system stores it.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from apps.core.models import Project
from apps.versions.models import ModelVersion


class AnonymizationRules(models.Model):
    """A project's rules, as numbered immutable revisions; the highest number is in force."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="anonymization_rules")
    number = models.PositiveIntegerField()
    rules = models.JSONField()  # {"allow": [], "deny": [], "thresholds": {}, "patterns": [], "keep": []}
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="anonrules_number_once")
        ]

    def __str__(self) -> str:
        return f"rules {self.number}"


class Capture(models.Model):
    """One captured exchange. ``raw`` is Fernet ciphertext of {"messages", "answer", "correction", …}."""

    class State(models.TextChoices):
        RAW = "raw", "Waiting for anonymization"
        ANONYMIZED = "anonymized", "Anonymized"
        EXPIRED = "expired", "Expired before anonymization"
        REFUSED = "refused", "Could not be anonymized"

    class Source(models.TextChoices):
        GATEWAY = "gateway", "Gateway"
        API = "api", "API"
        EVAL = "eval", "Failed eval result"
        FEEDBACK = "feedback", "User feedback"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="captures")
    external_id = models.CharField(max_length=120)
    source = models.CharField(max_length=10, choices=Source.choices)
    operation = models.CharField(max_length=64, blank=True, db_index=True)
    family = models.CharField(max_length=100, blank=True)
    cluster = models.CharField(max_length=120, blank=True)  # the TaskSpec.source of what it becomes
    failed = models.BooleanField(default=True)
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.RAW)
    raw = models.BinaryField(null=True)
    raw_expires_at = models.DateTimeField()
    content = models.JSONField(null=True)  # anonymized {"messages", "answer", "correction", "tools"}
    # Where something was found, without its text: [{"path", "start", "end", "entity", "score", "unsure"}].
    spans = models.JSONField(default=list)
    # Keyed hash of a value -> its placeholder: text that arrives later names the same person alike.
    pseudonyms = models.JSONField(default=dict)
    rules_number = models.PositiveIntegerField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    anonymized_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "external_id"], name="capture_once"),
            models.CheckConstraint(
                condition=Q(state="raw", raw__isnull=False, content__isnull=True)
                | Q(state="anonymized", raw__isnull=True, content__isnull=False)
                | Q(state__in=["expired", "refused"], raw__isnull=True, content__isnull=True),
                name="capture_never_clear_and_raw",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "id"], name="capture_waiting")]

    def __str__(self) -> str:
        return self.external_id
