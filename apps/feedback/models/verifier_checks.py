"""Verifiers tried on a few answers, and measured against people."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.feedback.models.cases import FailureCase
from apps.feedback.models.verifiers import Verifier


class VerifierTrial(models.Model):
    """Answers judged once by a worker to see what a verifier says of them; the verifier may be a draft.

    ``items_digest`` is the JSONL artifact of tasks and answers; ``results`` has an entry for each, in their
    order: ``{"state", "score", "checks", "reasons"}``. Trials are scratch work, and old ones are deleted.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="verifier_trials")
    kind = models.CharField(max_length=40)
    items_digest = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    results = models.JSONField(default=list)
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"trial {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("training:verifier_trial", args=[self.pk])


class VerifierAgreement(models.Model):
    """How far a version agrees with people who labelled cases, measured once. A failure is the positive
    class: ``caught`` both call a failure, ``missed`` only people, ``accused`` only the verifier.

    ``left_out`` counts by reason the cases that show nothing. Figures are None while it runs, and where
    ``n`` is too small for one (``too_small`` says what is missing).
    """

    verifier = models.ForeignKey(Verifier, on_delete=models.CASCADE, related_name="agreements")
    number = models.PositiveIntegerField()
    size = models.PositiveIntegerField()  # answers that were judged
    left_out = models.JSONField(default=dict)
    unscored = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    n = models.PositiveIntegerField(default=0)  # answers that both decided
    clusters = models.PositiveIntegerField(default=0)
    caught = models.PositiveIntegerField(default=0)
    missed = models.PositiveIntegerField(default=0)
    accused = models.PositiveIntegerField(default=0)
    cleared = models.PositiveIntegerField(default=0)
    agreement = models.JSONField(null=True)  # {"value", "low", "high", "method"}
    kappa = models.JSONField(null=True)  # the same; null too where κ is undefined
    f1 = models.JSONField(null=True)  # of finding failures
    too_small = models.CharField(max_length=200, blank=True)
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["verifier", "number"], name="agreement_number_once"),
            models.UniqueConstraint(
                fields=["verifier"], condition=Q(finished_at=None), name="agreement_one_running"
            ),
        ]

    def __str__(self) -> str:
        return f"agreement {self.number} of {self.verifier_id}"

    def get_absolute_url(self) -> str:
        return reverse("training:verifier_agreement", args=[self.pk])


class AgreementRow(models.Model):
    """One answer that people and a verifier judged. ``text`` is which one of the case's: the answer, or the
    correction that people put in its place. ``state`` is "" until it was judged."""

    class Text(models.TextChoices):
        ANSWER = "answer", "The answer"
        CORRECTION = "correction", "The correction"

    agreement = models.ForeignKey(VerifierAgreement, on_delete=models.CASCADE, related_name="rows")
    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=10, choices=Text.choices)
    passes = models.BooleanField()  # what people say
    state = models.CharField(max_length=10, blank=True)
    reasons = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agreement", "case", "text"], name="agreement_row_once")
        ]

    def __str__(self) -> str:
        return f"{self.get_text_display()} of case {self.case_id}"
