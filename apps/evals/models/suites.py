"""Suites, their immutable versions, the cases that these share, and imports on their way."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project


class Suite(models.Model):
    """A named set of cases. What is run is one of its versions."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="suites")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=100)
    description = models.TextField(blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "slug"], name="suite_slug_once")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("evals:suite", args=[self.pk])


class Case(models.Model):
    """One exact revision of a case; versions that did not change it share this row.

    ``split`` repeats the tag ``split`` in its one spelling; empty where the case belongs to none.
    """

    class Split(models.TextChoices):
        TRAIN = "train", "Train"
        VALIDATION = "validation", "Validation"
        HELD_OUT = "held_out", "Held out"

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="cases")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    family = models.CharField(max_length=100)
    source = models.CharField(max_length=200, blank=True)
    tags = models.JSONField(default=dict)
    split = models.CharField(max_length=10, choices=Split.choices, blank=True)
    task = models.JSONField()

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["suite", "key", "digest"], name="case_revision_once"),
            models.CheckConstraint(
                condition=Q(split__in=["", "train", "validation", "held_out"]), name="case_split_known"
            ),
        ]

    def __str__(self) -> str:
        return self.key


class SuiteVersion(models.Model):
    """An immutable list of case revisions. ``tasks_digest`` is the JSONL artifact of their TaskSpecs."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    tasks_digest = models.CharField(max_length=64)
    count = models.PositiveIntegerField()
    cases = models.ManyToManyField(Case, through="SuiteVersionCase", related_name="versions")
    note = models.CharField(max_length=200, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["suite", "number"], name="suite_version_number_once"),
            models.CheckConstraint(condition=Q(count__gt=0), name="suite_version_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.suite} v{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("evals:suite_version", args=[self.suite_id, self.number])


class SuiteVersionCase(models.Model):
    """``index`` is the line of the case in the version's tasks artifact."""

    version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE)
    case = models.ForeignKey(Case, on_delete=models.PROTECT)
    index = models.PositiveIntegerField()

    class Meta:
        ordering: ClassVar = ["index"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["version", "index"], name="suite_index_once"),
            models.UniqueConstraint(fields=["version", "case"], name="suite_case_once"),
        ]

    def __str__(self) -> str:
        return f"{self.index}: {self.case_id}"


class SuiteImport(models.Model):
    """Files on their way to a suite version: read, shown, then imported exactly as shown, or dropped.

    What was sent and what was read of it is encrypted, and gone once the import ends: it may hold what
    nobody has agreed to keep. ``reading`` numbers the works on it, so that a late one is not taken. What
    was asked for ``at_once`` is imported as soon as it is read, unless something would be left out.
    """

    class State(models.TextChoices):
        READING = "reading", "Reading"
        READY = "ready", "Ready"
        IMPORTING = "importing", "Importing"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="suite_imports")
    suite_name = models.CharField(max_length=100)
    filename = models.CharField(max_length=300)
    options = models.JSONField(default=dict)
    keep_personal_data = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=State.choices, default=State.READING)
    error = models.TextField(blank=True)
    reading = models.PositiveIntegerField(default=1)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    upload = models.BinaryField(null=True)
    prepared = models.BinaryField(null=True)
    report = models.BinaryField(null=True)
    digest = models.CharField(max_length=64, blank=True)
    against = models.ForeignKey(SuiteVersion, on_delete=models.SET_NULL, null=True, related_name="+")
    version = models.ForeignKey(SuiteVersion, on_delete=models.SET_NULL, null=True, related_name="imports")
    at_once = models.BooleanField(default=False)
    created_by = models.CharField(max_length=150)
    confirmed_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"import of {self.filename}"

    def get_absolute_url(self) -> str:
        return reverse("evals:suite_import_preview", args=[self.pk])

    @property
    def topic(self) -> str:
        return f"evals.suite_import:{self.pk}"
