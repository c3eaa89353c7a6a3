"""Probes: watches on an unchanged name, and their rounds."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.versions.models import Deployment, EditionKind, ModelVersion


class Probe(models.Model):
    """A watch on an unchanged name: fixed prompts asked again on a schedule.

    ``version`` and ``edition_kind`` say which edition of ours; without them the deployment is an
    external endpoint. One that ``follows`` moves on to whatever version goes into service and takes its
    reference anew there. ``reference`` is None until it could be taken. While a round is being asked,
    ``busy_until`` lies ahead; it passes by itself where the worker died.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="probes")
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="probes")
    version = models.ForeignKey(
        ModelVersion, on_delete=models.CASCADE, null=True, blank=True, related_name="probes"
    )
    edition_kind = models.CharField(max_length=10, choices=EditionKind.choices, blank=True)
    follows = models.BooleanField(default=False)
    model = models.CharField(max_length=200)
    prompts = models.JSONField()
    reference = models.JSONField(null=True)
    every_s = models.PositiveIntegerField(default=21_600)
    enabled = models.BooleanField(default=True)
    next_at = models.DateTimeField(null=True, blank=True)
    busy_until = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["deployment", "model"], condition=Q(follows=False), name="probe_once_per_model"
            ),
            models.UniqueConstraint(
                fields=["project", "edition_kind"], condition=Q(follows=True), name="probe_follows_once"
            ),
            models.CheckConstraint(
                condition=Q(follows=False) | Q(version__isnull=False), name="probe_follows_a_version"
            ),
            models.CheckConstraint(
                condition=Q(version__isnull=True, edition_kind="")
                | (Q(version__isnull=False) & ~Q(edition_kind="")),
                name="probe_target_complete",
            ),
        ]

    def __str__(self) -> str:
        return f"probe of {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("evals:probe", args=[self.pk])

    @property
    def title(self) -> str:
        """What is watched, in a word or two."""
        if self.version is None:
            return self.deployment.name
        if self.follows:
            return f"{self.get_edition_kind_display()} edition in service"
        return f"{self.version} {self.get_edition_kind_display().lower()}"

    @property
    def lineage_key(self) -> str:
        return f"evals.probe:{self.pk}"


class ProbeRound(models.Model):
    """One round. ``unmeasured`` is not "unchanged", and neither is ``partial``.

    ``signals`` holds, by name, ``state``, ``value``, ``threshold``, ``n``, ``reasons`` and ``detail`` of
    each signal that was judged. ``cost_usd`` is None where the endpoint has no prices.
    """

    class Verdict(models.TextChoices):
        REFERENCE = "reference", "Reference taken"
        UNCHANGED = "unchanged", "Unchanged"
        FLAGGED = "flagged", "Flagged"
        PARTIAL = "partial", "Partly measured"
        UNMEASURED = "unmeasured", "Could not measure"

    probe = models.ForeignKey(Probe, on_delete=models.CASCADE, related_name="rounds")
    verdict = models.CharField(max_length=12, choices=Verdict.choices)
    signals = models.JSONField(default=dict)
    reasons = models.JSONField(default=list)
    requests = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.probe}: {self.verdict}"

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
