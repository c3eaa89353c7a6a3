"""What a verifier must judge right before it may train anything, and how each run of it went."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.feedback.models.verifiers import Verifier


class GauntletEntryQuerySet(models.QuerySet["GauntletEntry"]):
    def in_force(self) -> "GauntletEntryQuerySet":
        """What the gauntlet judges: retired entries are kept, and judged no more."""
        return self.filter(retired_at=None)


class GauntletEntry(models.Model):
    """One solution that a verifier must judge right before it may train anything.

    ``turns``, where not empty, is what is said turn by turn in the task's environment; else ``answer`` is
    the one answer. ``row`` is the cheat's number in ``domain.exploits.ROWS``, ``source`` where it was
    reported or found. ``outcome`` and ``reasons`` are those of the last run; earlier ones are
    ``GauntletOutcome`` rows. A retired entry says who took it out, and why.
    """

    class Origin(models.TextChoices):
        GOOD = "known_good", "Known good"
        BAD = "known_bad", "Known bad"
        NOOP = "no_op", "No-op"
        EXPLOIT = "exploit", "Exploit"

    verifier = models.ForeignKey(Verifier, on_delete=models.CASCADE, related_name="entries")
    origin = models.CharField(max_length=10, choices=Origin.choices)
    name = models.CharField(max_length=120)
    task = models.JSONField()
    answer = models.TextField(blank=True)
    turns = models.JSONField(default=list)
    must_pass = models.BooleanField()
    row = models.PositiveSmallIntegerField(null=True, blank=True)
    source = models.CharField(max_length=200, blank=True)
    added_by = models.CharField(max_length=150, blank=True)  # "" for what the catalogue or a pack brings
    outcome = models.CharField(max_length=10, blank=True)  # passed | failed | unscored | error
    reasons = models.JSONField(default=list)
    checked_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    retired_by = models.CharField(max_length=150, blank=True)
    retired_reason = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = GauntletEntryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["verifier", "origin", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["verifier", "name"], name="gauntlet_name_once"),
            models.CheckConstraint(
                condition=Q(retired_at=None) | ~Q(retired_reason=""), name="gauntlet_retired_for_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("training:entry", args=[self.pk])


class GauntletRun(models.Model):
    """One run of a verifier's gauntlet. ``admission`` is what it decided, "" while it runs or when it
    could not run (``error``)."""

    verifier = models.ForeignKey(Verifier, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    size = models.PositiveIntegerField(default=0)  # entries
    counts = models.JSONField(default=dict)  # judgements by state, several for each entry
    wrong = models.PositiveIntegerField(default=0)  # entries judged wrongly, or not the same each time
    admission = models.CharField(max_length=10, choices=Verifier.Admission.choices, blank=True)
    reasons = models.JSONField(default=list)
    error = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["verifier", "number"], name="gauntlet_run_number_once")
        ]

    def __str__(self) -> str:
        return f"run {self.number} of {self.verifier_id}"


class GauntletOutcome(models.Model):
    """What one run said of one entry. ``states`` has one state per repeat."""

    run = models.ForeignKey(GauntletRun, on_delete=models.CASCADE, related_name="outcomes")
    entry = models.ForeignKey(GauntletEntry, on_delete=models.CASCADE, related_name="outcomes")
    states = models.JSONField()
    right = models.BooleanField()
    reasons = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["-run_id", "entry_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "entry"], name="gauntlet_outcome_once")
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} in run {self.run_id}"
