"""Base models, versions of them, their editions, and what is known of each version."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project


class EditionKind(models.TextChoices):
    STANDARD = "standard", "Standard"
    HIGH_SPEED = "high_speed", "High-speed"


# Evidence of these kinds comes from a finished evaluation.
EVALUATION_KINDS = ("suite", "comparison")


class BaseModel(models.Model):
    """Fixed weights. ``engine_name`` is the name under which engines serve them."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="base_models")
    name = models.CharField(max_length=100)
    engine_name = models.CharField(max_length=100)
    path = models.CharField(max_length=500)
    digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="base_model_name_once")
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """A base model plus at most one adapter. ``origin`` is what made it (``training.run:7``)."""

    class State(models.TextChoices):
        REGISTERED = "registered", "Registered"
        CANDIDATE = "candidate", "Candidate"
        IN_SERVICE = "in_service", "In service"
        RETIRED = "retired", "Retired"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="versions")
    base = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="versions")
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    number = models.CharField(max_length=20)
    major = models.PositiveIntegerField()
    minor = models.PositiveIntegerField()
    adapter_name = models.CharField(max_length=120, blank=True)
    adapter_digest = models.CharField(max_length=64, blank=True)
    origin = models.CharField(max_length=80, blank=True)
    origin_label = models.CharField(max_length=120, blank=True)
    notes = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.REGISTERED)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-major", "-minor"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "major", "minor"], name="version_number_once"),
            models.UniqueConstraint(
                fields=["project", "origin"], condition=~Q(origin=""), name="version_one_per_origin"
            ),
            models.UniqueConstraint(
                fields=["project"], condition=Q(state="in_service"), name="version_one_in_service"
            ),
            models.CheckConstraint(
                condition=(Q(adapter_digest="") & Q(adapter_name=""))
                | (~Q(adapter_digest="") & ~Q(adapter_name="")),
                name="version_adapter_complete",
            ),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        return reverse("versions:detail", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"versions.version:{self.pk}"

    def headline_evidence(self) -> "Evidence | None":
        """The newest finding of an evaluation, else the newest of any kind; reads what is prefetched."""
        rows = sorted(self.evidence.all(), key=lambda row: (row.kind in EVALUATION_KINDS, row.pk))
        return rows[-1] if rows else None

    @property
    def engine_model(self) -> str:
        """The model name to ask an engine for."""
        return self.adapter_name or self.base.engine_name


class Edition(models.Model):
    """One way to serve a version. Editions differ in ``profile`` only, never in weights."""

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="editions")
    kind = models.CharField(max_length=10, choices=EditionKind.choices)
    profile = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["version", "-kind"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["version", "kind"], name="edition_kind_once")
        ]

    def __str__(self) -> str:
        return f"{self.version} {self.get_kind_display().lower()}"


class Evidence(models.Model):
    """What was found out about an edition of a version, pushed here by those who measured it."""

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="evidence")
    edition_kind = models.CharField(max_length=10, choices=EditionKind.choices, blank=True)
    # suite | comparison | speed | non_inferiority | gate | gate_override
    kind = models.CharField(max_length=30)
    source = models.CharField(max_length=80)
    title = models.CharField(max_length=200)
    sentence = models.TextField()
    verdict = models.CharField(max_length=20, blank=True)
    data = models.JSONField(default=dict)
    url = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["version", "edition_kind", "kind", "source"], name="evidence_once"
            )
        ]

    def __str__(self) -> str:
        return self.title
