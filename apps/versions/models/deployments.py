"""Where versions are served, our engines and external endpoints, and what went into service when."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from apps.core.models import Project
from apps.versions.models.registry import EditionKind, ModelVersion


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
