"""The demo turn: one whole turn of the loop as a resumable state machine."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project


class DemoTurn(models.Model):
    """``state`` is what the phases have done so far; every phase can be run again harmlessly."""

    class Status(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="demo_turns")
    seed = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.RUNNING)
    phase = models.CharField(max_length=40)
    key_id = models.BigIntegerField()
    api_key = models.BinaryField()  # ciphertext of a key made for this turn, revoked at its end
    state = models.JSONField(default=dict)
    report = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    phase_started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(status="running"), name="turn_one_running"
            )
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("loop:turn", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"loop.turn:{self.pk}"


class TurnLine(models.Model):
    """One line of a turn's log, as a person reads it."""

    turn = models.ForeignKey(DemoTurn, on_delete=models.CASCADE, related_name="lines")
    phase = models.CharField(max_length=40)
    text = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return self.text
