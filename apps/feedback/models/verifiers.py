"""Verifiers by name and version."""

from typing import ClassVar

from django.db import models
from django.urls import reverse

from apps.core.models import Project


class Verifier(models.Model):
    """One version of a named verifier: kind and parameters never change, an edit makes the next number.
    Training may use it only while ``admission`` is ``admitted``, which each version earns itself.

    ``digest`` is that of kind and parameters; the same under one name is the same version.
    """

    class Admission(models.TextChoices):
        UNCHECKED = "unchecked", "Not checked"
        ADMITTED = "admitted", "Admitted"
        REFUSED = "refused", "Refused"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="verifiers")
    name = models.CharField(max_length=100)
    number = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=40)
    params = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True)
    note = models.CharField(max_length=300, blank=True)  # what its author says about the change
    admission = models.CharField(max_length=10, choices=Admission.choices, default=Admission.UNCHECKED)
    reasons = models.JSONField(default=list)  # why it was refused, one sentence per entry
    checks = models.PositiveIntegerField(default=0)  # how often the gauntlet was started
    checked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "number"], name="verifier_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("training:verifier", args=[self.pk])
