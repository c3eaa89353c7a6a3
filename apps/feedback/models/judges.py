"""Judges that a project has set up, answers whose right verdict is known, and calibrations: how far a
judge agrees with people."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from apps.core.models import Project
from apps.feedback.judge_words import CalibrationWords


class Judge(models.Model):
    """One version of a named judge; a version is never changed. ``digest`` names kind and parameters,
    ``setup`` the same without criteria: what stays when only the question changes."""

    class Kind(models.TextChoices):
        JUDGE = "judge", "Score"
        LABEL = "label", "Labels"
        PAIRWISE = "pairwise", "Comparison"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judges")
    name = models.CharField(max_length=100)
    number = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    params = models.JSONField()
    digest = models.CharField(max_length=64)
    setup = models.CharField(max_length=64)
    note = models.CharField(max_length=200, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "number"], name="judge_number_once")
        ]
        indexes: ClassVar = [models.Index(fields=["project", "digest"], name="judge_digest")]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("evals:judge", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"feedback.judge:{self.pk}"


class GoldAnswer(models.Model):
    """An answer with the verdict that people settled on. With a ``baseline`` the verdict says whether the
    answer is better than it. ``source`` is what answers share, such as one question."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="gold_answers")
    digest = models.CharField(max_length=64)
    question = models.TextField()
    answer = models.TextField()
    baseline = models.TextField(blank=True)
    passes = models.BooleanField()
    source = models.CharField(max_length=120)
    added_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "digest"], name="gold_answer_once")
        ]

    def __str__(self) -> str:
        return self.question[:60]


class Calibration(CalibrationWords, models.Model):
    """One comparison of a judge with people. ``figures`` is ``domain.calibration.Calibration`` as JSON and
    ``doubts`` what speaks against the judge; both are set when it is done. ``kappa`` is None where it is
    undefined."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="calibrations")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    size = models.PositiveIntegerField()
    taken = models.JSONField(default=dict)  # answers by origin, and what was left out by reason
    items_digest = models.CharField(max_length=64)
    results_digest = models.CharField(max_length=64, blank=True)
    figures = models.JSONField(null=True)
    doubts = models.JSONField(default=list)
    kappa = models.FloatField(null=True)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.FloatField(null=True)  # None: a price is not known
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "number"], name="calibration_number_once"),
            models.UniqueConstraint(
                fields=["judge"], condition=Q(state="running"), name="calibration_one_running"
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | Q(figures__isnull=False), name="calibration_done_has_figures"
            ),
        ]

    def __str__(self) -> str:
        return f"calibration {self.number} of {self.judge}"

    def get_absolute_url(self) -> str:
        return reverse("evals:calibration", args=[self.judge_id, self.number])

    @property
    def lineage_key(self) -> str:
        return f"feedback.calibration:{self.pk}"


class JudgedAnswerQuerySet(models.QuerySet["JudgedAnswer"]):
    def disagreements(self) -> "JudgedAnswerQuerySet":
        return self.filter(judged__isnull=False).exclude(judged=F("human"))


class JudgedAnswer(models.Model):
    """One answer in a calibration: people's verdict and the judge's. ``judged`` is None where the judge
    decided nothing, and ``silence`` then says why. ``index`` is its line in the calibration's artifacts."""

    class Origin(models.TextChoices):
        LABEL = "label", "Label"
        CORRECTION = "correction", "Correction"
        GOLD = "gold", "Gold answer"

    calibration = models.ForeignKey(Calibration, on_delete=models.CASCADE, related_name="answers")
    index = models.PositiveIntegerField()
    title = models.CharField(max_length=160)
    origin = models.CharField(max_length=10, choices=Origin.choices)
    case = models.ForeignKey(
        "feedback.FailureCase", on_delete=models.SET_NULL, null=True, related_name="judged_answers"
    )
    gold = models.ForeignKey(GoldAnswer, on_delete=models.SET_NULL, null=True, related_name="judged_answers")
    human = models.BooleanField()
    judged = models.BooleanField(null=True)
    silence = models.CharField(max_length=12, blank=True)
    score = models.FloatField(null=True)
    reasons = models.JSONField(default=list)
    votes = models.JSONField(default=list)  # [{"voice", "passed", "silence", "reason"}]

    objects = JudgedAnswerQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["index"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["calibration", "index"], name="judged_answer_once"),
            models.CheckConstraint(
                condition=Q(judged__isnull=True) & ~Q(silence="") | Q(judged__isnull=False, silence=""),
                name="judged_answer_decided_or_silent",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        calibration = self.calibration
        return reverse("evals:judged_answer", args=[calibration.judge_id, calibration.number, self.index])
