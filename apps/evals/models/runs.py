"""Runs of a suite version against a target, their results with states, and what these add up to.

``RunSlice`` and ``RunCluster`` are sums kept beside the results, changed in the same transaction; they
can be built anew from the results at any time (``services.run_refigure``).
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.evals.models.suites import Case, SuiteVersion
from apps.versions.models import Deployment, EditionKind, ModelVersion


class Run(models.Model):
    """One evaluation of a suite version against a target: an edition of ours, or an endpoint."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.PROTECT, related_name="runs")
    version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    edition_kind = models.CharField(max_length=10, choices=EditionKind.choices, blank=True)
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="runs")
    sampling = models.JSONField()
    batch_size = models.PositiveIntegerField(default=32)
    concurrency = models.PositiveIntegerField(default=16)
    cache = models.BooleanField(default=False)
    dimensions = models.JSONField(null=True)  # what results are added up by; None: not looked at yet
    # Prices when the run started: what a run has cost does not change with the endpoint.
    input_usd_per_mtok = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_usd_per_mtok = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    total = models.PositiveIntegerField()
    error = models.TextField(blank=True)
    retries = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)  # samples that are planned and not reported yet
    # Time that the run went on, without pauses: what is over, and since when it goes on now.
    ran_s = models.FloatField(default=0.0)
    running_since = models.DateTimeField(null=True, blank=True)
    done_before = models.PositiveIntegerField(default=0)  # samples done when it last began to go on
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(version__isnull=True, edition_kind="")
                | (Q(version__isnull=False) & ~Q(edition_kind="")),
                name="run_target_complete",
            ),
            models.CheckConstraint(
                condition=Q(running_since__isnull=True) | Q(state="running"), name="run_clock_stands"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evals:run", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"evals.run:{self.pk}"

    @property
    def target_name(self) -> str:
        """What was asked, in a word or two: “1.1 standard”, or the endpoint's name."""
        if self.version is None:
            return self.deployment.name
        return f"{self.version} {self.get_edition_kind_display().lower()}"


class Result(models.Model):
    """One sample of one case. Errors and unscored are states of their own, never zeros."""

    class State(models.TextChoices):
        PASSED = "passed", "Passed"
        FAILED = "failed", "Failed"
        ERROR = "error", "Error"
        UNSCORED = "unscored", "Unscored"
        CANCELLED = "cancelled", "Cancelled"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="results", db_index=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="results")
    family = models.CharField(max_length=100, blank=True)  # that of the case, to be found by
    sample = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices)
    score = models.FloatField(null=True)
    answer = models.TextField(blank=True)
    verdict = models.JSONField(null=True)
    flags = models.JSONField(default=list)  # what a detector found suspicious
    error = models.CharField(max_length=300, blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    # Tokens of errors that this result replaced: they were paid for too.
    earlier_prompt_tokens = models.PositiveIntegerField(default=0)
    earlier_completion_tokens = models.PositiveIntegerField(default=0)
    ttft_ms = models.FloatField(null=True)
    per_token_ms = models.FloatField(null=True)
    latency_ms = models.FloatField(null=True)
    attempts = models.PositiveIntegerField(default=1)  # requests that this answer took
    cached = models.BooleanField(default=False)
    served_model = models.CharField(max_length=200, blank=True)
    attempt = models.PositiveIntegerField(default=1)  # 1, and one more for each retry of errors
    turns_digest = models.CharField(max_length=64, blank=True)  # of what was done in several turns
    turns_line = models.PositiveIntegerField(default=0)
    captured_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "case", "sample"], name="result_once"),
            models.CheckConstraint(
                condition=Q(state__in=["passed", "failed"], score__isnull=False)
                | Q(state__in=["error", "unscored", "cancelled"], score__isnull=True),
                name="result_score_matches_state",
            ),
        ]
        # Lists go on from the last id seen, with each filter.
        indexes: ClassVar = [
            models.Index(fields=["run", "id"], name="result_list"),
            models.Index(fields=["run", "state", "id"], name="result_by_state"),
            models.Index(fields=["run", "family", "id"], name="result_by_family"),
            models.Index(
                fields=["run"], condition=Q(state="failed", captured_at=None), name="result_uncaptured"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.case_id} sample {self.sample}: {self.state}"

    def get_absolute_url(self) -> str:
        return reverse("evals:result", args=[self.run_id, self.pk])

    @property
    def why(self) -> str:
        """The first reason of a verdict that is not a pass, or the error, cut for a table."""
        reasons = (self.verdict or {}).get("reasons") or [self.error]
        return str(reasons[0])[:200] if self.state != self.State.PASSED else ""


class RunSlice(models.Model):
    """What the results of one part of a run add up to; the fields are those of ``domain.tally.Tally``.

    ``dimension`` is "" for the whole run, "family", or "tag:<name>"; ``value`` is which of them.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="slices", db_index=False)
    dimension = models.CharField(max_length=120, blank=True)
    value = models.CharField(max_length=200, blank=True)
    passed = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    error = models.PositiveBigIntegerField(default=0)
    unscored = models.PositiveBigIntegerField(default=0)
    cancelled = models.PositiveBigIntegerField(default=0)
    answered = models.PositiveBigIntegerField(default=0)
    flagged = models.PositiveBigIntegerField(default=0)
    cached = models.PositiveBigIntegerField(default=0)
    attempts = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    paid_prompt_tokens = models.PositiveBigIntegerField(default=0)
    paid_completion_tokens = models.PositiveBigIntegerField(default=0)
    score_e6 = models.PositiveBigIntegerField(default=0)
    clusters = models.PositiveBigIntegerField(default=0)
    rows_rows = models.PositiveBigIntegerField(default=0)
    rows_passed = models.PositiveBigIntegerField(default=0)
    passed_passed = models.PositiveBigIntegerField(default=0)
    sketches = models.JSONField(default=dict)
    cases = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["dimension", "value"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "dimension", "value"], name="slice_once")
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} {self.dimension or 'whole'} {self.value}".rstrip()


class RunCluster(models.Model):
    """Scored and passed rows of a source that cases of a run share, by part of the run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="clusters", db_index=False)
    source = models.CharField(max_length=200)
    parts = models.JSONField(default=dict)  # "<dimension>\x1f<value>": [rows, passed]

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "source"], name="cluster_once")]

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.source}"
