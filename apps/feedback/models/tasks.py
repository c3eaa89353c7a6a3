"""Families of tasks, the tasks that cases and packs become, and datasets of them."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.feedback.models.cases import FailureCase
from apps.feedback.models.verifiers import Verifier


class Family(models.Model):
    """A kind of task. Its verifier judges every task of it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="families")
    name = models.SlugField(max_length=100)
    title = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    pack = models.CharField(max_length=60, blank=True)
    verifier = models.ForeignKey(Verifier, on_delete=models.PROTECT, null=True, related_name="families")
    unavailable = models.TextField(blank=True)  # why its answers cannot be verified here
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        verbose_name_plural = "families"
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="family_name_once")]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("training:family", args=[self.pk])


class TaskAsset(models.Model):
    """A task made from a case (or from a pack), with surrogates in place of pseudonyms.

    ``task`` is a ``TaskSpec``; ``split`` follows from its source by stable hash and never changes.
    """

    class Split(models.TextChoices):
        TRAIN = "train", "Train"
        HELD_OUT = "held_out", "Held out"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assets")
    case = models.ForeignKey(
        FailureCase, on_delete=models.SET_NULL, null=True, blank=True, related_name="assets"
    )
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="assets")
    verifier = models.ForeignKey(Verifier, on_delete=models.PROTECT, related_name="assets")
    number = models.PositiveIntegerField(default=1)
    key = models.CharField(max_length=120)
    task = models.JSONField()
    correction = models.TextField(blank=True)
    turns = models.JSONField(default=list)  # the right answer turn by turn, where the task has turns
    source = models.CharField(max_length=120)
    split = models.CharField(max_length=10, choices=Split.choices)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "key", "number"], name="asset_number_once"),
            models.CheckConstraint(condition=Q(split__in=["train", "held_out"]), name="asset_split_known"),
            models.CheckConstraint(condition=Q(number__gte=1) & ~Q(source=""), name="asset_source_given"),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "family", "split"], name="asset_pick")]

    def __str__(self) -> str:
        return self.key

    def get_absolute_url(self) -> str:
        return reverse("feedback:asset", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"feedback.asset:{self.pk}"


class Dataset(models.Model):
    """An immutable, content-addressed list of assets.

    ``tasks_digest`` is the JSONL artifact: one TaskSpec a line (``rl``), or one OpenAI chat example
    a line (``sft``).
    """

    class Kind(models.TextChoices):
        RL = "rl", "RL tasks"
        SFT = "sft", "SFT"
        PREFERENCE = "preference", "Preference pairs"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=100)
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.RL)
    split = models.CharField(max_length=10, choices=TaskAsset.Split.choices, default=TaskAsset.Split.TRAIN)
    assets = models.ManyToManyField(TaskAsset, related_name="datasets")
    tasks_digest = models.CharField(max_length=64)
    count = models.PositiveIntegerField()
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "number"], name="dataset_number_once"),
            models.CheckConstraint(condition=Q(count__gt=0), name="dataset_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("feedback:dataset", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"feedback.dataset:{self.pk}"
