"""Versions, editions, where they are served, how traffic is routed, and the releases that move it."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
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


class DeploymentQuerySet(models.QuerySet["Deployment"]):
    def in_use(self) -> "DeploymentQuerySet":
        return self.filter(retired_at=None)

    def engines(self) -> "DeploymentQuerySet":
        return self.in_use().filter(kind="engine")

    def externals(self) -> "DeploymentQuerySet":
        return self.in_use().filter(kind="external")


class Deployment(models.Model):
    """An address that answers: one of our engines (by edition kind), or an external endpoint.

    ``api_key`` is encrypted and leaves the database only inside the gateway process. The limits hold for
    all requests that this installation sends to an external endpoint together; prices are US dollars per
    million tokens. Null: no limit, no known price.
    """

    class Kind(models.TextChoices):
        ENGINE = "engine", "Engine"
        EXTERNAL = "external", "External endpoint"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="deployments")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    edition_kind = models.CharField(max_length=10, choices=EditionKind.choices, blank=True)
    base_url = models.URLField(max_length=300)
    model = models.CharField(max_length=200, blank=True)
    api_key = models.BinaryField(null=True, blank=True)
    healthy = models.BooleanField(null=True)
    healthy_changed_at = models.DateTimeField(null=True, blank=True)
    loaded = models.JSONField(default=list)
    max_concurrency = models.PositiveIntegerField(default=16)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    timeout_s = models.PositiveIntegerField(default=60)  # of one attempt
    deadline_s = models.PositiveIntegerField(default=600)  # of a request with all its attempts and waits
    max_attempts = models.PositiveIntegerField(default=5)
    input_usd_per_mtok = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_usd_per_mtok = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DeploymentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["kind", "name"]
        constraints: ClassVar = [
            # The name of a retired deployment is free again.
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(retired_at=None), name="deployment_name_once"
            ),
            models.CheckConstraint(
                condition=(Q(kind="engine") & ~Q(edition_kind=""))
                | (Q(kind="external") & Q(edition_kind="") & ~Q(model="")),
                name="deployment_kind_complete",
            ),
            models.CheckConstraint(
                condition=Q(
                    max_concurrency__gte=1,
                    max_attempts__gte=1,
                    timeout_s__gte=1,
                    deadline_s__gte=F("timeout_s"),
                )
                & (Q(requests_per_minute=None) | Q(requests_per_minute__gte=1))
                & (Q(tokens_per_minute=None) | Q(tokens_per_minute__gte=1)),
                name="deployment_limits_let_something_through",
            ),
            models.CheckConstraint(
                condition=(Q(input_usd_per_mtok=None) | Q(input_usd_per_mtok__gte=0))
                & (Q(output_usd_per_mtok=None) | Q(output_usd_per_mtok__gte=0)),
                name="deployment_prices_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ServiceChange(models.Model):
    """Which version went into service when, and which one left: the history that rolling back reads."""

    class Kind(models.TextChoices):
        PROMOTE = "promote", "Promoted"
        ROLL_BACK = "roll_back", "Rolled back"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="service_changes")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="service_changes")
    previous = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    release = models.ForeignKey("Release", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    without_evidence = models.BooleanField(default=False)
    actor = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.version}"


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
