"""Gates of suites: numbered revisions of their rules, and what these decided on runs. Neither changes."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import AppendOnlyQuerySet, Project
from apps.evals.models.runs import Run
from apps.evals.models.suites import Suite
from domain.gate_rules import Rule, rules_read


class Immutable(models.Model):
    """A row that is written once."""

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(f"A {self._meta.verbose_name} is never changed. Make a new one.")
        super().save(*args, **kwargs)


class GateRevision(Immutable):
    """The rules of a suite's gate from one moment on. No rules: from then on there is no gate."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="gate_revisions")
    number = models.PositiveIntegerField()
    rules = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    blocks_release = models.BooleanField(default=True)
    reason = models.TextField()
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["suite", "number"], name="gate_revision_number_once")
        ]

    def __str__(self) -> str:
        return f"rules {self.number} of {self.suite}"

    def get_absolute_url(self) -> str:
        return reverse("evals:gate", args=[self.suite_id])

    def parsed(self) -> tuple[Rule, ...]:
        return rules_read(self.rules)


class GateDecision(Immutable):
    """One revision's answer on one run, with digests of all that it rests on.

    ``in_service_baseline`` is False where someone named the baseline: such a decision answers a question,
    it opens no release.
    """

    class Decision(models.TextChoices):
        PASSED = "passed", "Passed"
        FAILED = "failed", "Failed"
        UNDECIDED = "undecided", "Undecided"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="gate_decisions")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="gate_decisions")
    revision = models.ForeignKey(GateRevision, on_delete=models.PROTECT, related_name="decisions")
    baseline = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    in_service_baseline = models.BooleanField(default=True)
    decision = models.CharField(max_length=10, choices=Decision.choices)
    sentence = models.TextField()
    results = models.JSONField()  # one object a rule: kind, words, state, sentence, figures
    suite_digest = models.CharField(max_length=64)
    rules_digest = models.CharField(max_length=64)
    run_digest = models.CharField(max_length=64)
    baseline_digest = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "digest"], name="gate_decision_once"),
            models.CheckConstraint(
                condition=Q(decision__in=["passed", "failed", "undecided"]), name="gate_decision_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision} on {self.run}"

    def get_absolute_url(self) -> str:
        return reverse("evals:gate_decision", args=[self.pk])
