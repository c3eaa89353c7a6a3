"""From production traffic to tasks: inferences, captures, cases, labels, verifiers, assets, datasets.

Captured text exists in two forms only: encrypted (``raw``, until anonymized or expired) and
anonymized (``content``). Nothing else in the system stores it.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.core.models import Project
from apps.versions.models import ModelVersion, Release


class Inference(models.Model):
    """One operation through the gateway: ids and numbers. Its text, if sampled, is a Capture."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="inferences")
    operation = models.CharField(max_length=64, unique=True)
    family = models.CharField(max_length=100, blank=True)
    task_type = models.CharField(max_length=20, blank=True)
    unit = models.CharField(max_length=32)
    version = models.ForeignKey(ModelVersion, on_delete=models.SET_NULL, null=True, related_name="inferences")
    edition_kind = models.CharField(max_length=10, blank=True)
    release = models.ForeignKey(Release, on_delete=models.SET_NULL, null=True, related_name="inferences")
    segment = models.PositiveIntegerField(null=True)
    assigned_arm = models.CharField(max_length=10, blank=True)
    served_arm = models.CharField(max_length=10, blank=True)
    revision = models.PositiveIntegerField(null=True)
    status = models.PositiveIntegerField()
    error = models.CharField(max_length=60, blank=True)
    attempts = models.JSONField(default=list)
    streamed = models.BooleanField(default=False)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    ttft_ms = models.FloatField(null=True)
    latency_ms = models.FloatField(null=True)
    started_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-started_at", "-pk"]
        indexes: ClassVar = [models.Index(fields=["project", "-started_at"], name="inference_recent")]

    def __str__(self) -> str:
        return self.operation


class FeedbackSignal(models.Model):
    """A rating, comment or correction for an operation; it may arrive before the operation's row.

    ``content`` holds the anonymized comment and correction, ``raw`` their ciphertext until then.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="signals")
    external_id = models.CharField(max_length=120)
    operation = models.CharField(max_length=64, db_index=True)
    metric = models.CharField(max_length=60)
    value = models.JSONField(null=True)
    negative = models.BooleanField(default=False)
    has_correction = models.BooleanField(default=False)
    raw = models.BinaryField(null=True)
    content = models.JSONField(null=True)
    joined_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "external_id"], name="signal_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric} for {self.operation}"


class HeldExchange(models.Model):
    """Ciphertext of an operation that nobody asked to keep, held briefly in case feedback comes.

    It becomes a ``Capture`` when feedback is negative or corrects the answer, and is deleted at
    ``expires_at`` otherwise.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="held_exchanges")
    operation = models.CharField(max_length=64, unique=True)
    external_id = models.CharField(max_length=120)
    cluster = models.CharField(max_length=120, blank=True)
    raw = models.BinaryField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.operation


class AnonymizationRules(models.Model):
    """A project's rules, as numbered immutable revisions; the highest number is in force."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="anonymization_rules")
    number = models.PositiveIntegerField()
    rules = models.JSONField()  # {"allow": [], "deny": [], "thresholds": {}, "patterns": [], "keep": []}
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="anonrules_number_once")
        ]

    def __str__(self) -> str:
        return f"rules {self.number}"


class Capture(models.Model):
    """One captured exchange. ``raw`` is Fernet ciphertext of {"messages", "answer", "correction", …}."""

    class State(models.TextChoices):
        RAW = "raw", "Waiting for anonymization"
        ANONYMIZED = "anonymized", "Anonymized"
        EXPIRED = "expired", "Expired before anonymization"
        REFUSED = "refused", "Could not be anonymized"

    class Source(models.TextChoices):
        GATEWAY = "gateway", "Gateway"
        API = "api", "API"
        EVAL = "eval", "Failed eval result"
        FEEDBACK = "feedback", "User feedback"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="captures")
    external_id = models.CharField(max_length=120)
    source = models.CharField(max_length=10, choices=Source.choices)
    operation = models.CharField(max_length=64, blank=True, db_index=True)
    family = models.CharField(max_length=100, blank=True)
    cluster = models.CharField(max_length=120, blank=True)  # the TaskSpec.source of what it becomes
    failed = models.BooleanField(default=True)
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.RAW)
    raw = models.BinaryField(null=True)
    raw_expires_at = models.DateTimeField()
    content = models.JSONField(null=True)  # anonymized {"messages", "answer", "correction", "tools"}
    # Where something was found, without its text: [{"path", "start", "end", "entity", "score", "unsure"}].
    spans = models.JSONField(default=list)
    # Keyed hash of a value -> its placeholder: text that arrives later names the same person alike.
    pseudonyms = models.JSONField(default=dict)
    rules_number = models.PositiveIntegerField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    anonymized_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "external_id"], name="capture_once"),
            models.CheckConstraint(
                condition=Q(state="raw", raw__isnull=False, content__isnull=True)
                | Q(state="anonymized", raw__isnull=True, content__isnull=False)
                | Q(state__in=["expired", "refused"], raw__isnull=True, content__isnull=True),
                name="capture_never_clear_and_raw",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "id"], name="capture_waiting")]

    def __str__(self) -> str:
        return self.external_id


class LabelSchema(models.Model):
    """Failure kinds and severities of a project, as numbered immutable revisions."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="label_schemas")
    number = models.PositiveIntegerField()
    kinds = models.JSONField()  # [{"slug", "title", "key"}]
    severities = models.JSONField()
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="labelschema_number_once")
        ]

    def __str__(self) -> str:
        return f"schema {self.number}"


class FailureCase(models.Model):
    """A failure that people look at. Text lives in its capture (anonymized)."""

    class State(models.TextChoices):
        NEW = "new", "To label"
        LABELLED = "labelled", "Labelled"
        ASSET = "asset", "Became a task"
        DISMISSED = "dismissed", "Dismissed"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="cases")
    capture = models.OneToOneField(Capture, on_delete=models.CASCADE, related_name="case")
    family = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.NEW)
    title = models.CharField(max_length=160)
    group_key = models.CharField(max_length=64, blank=True)
    # MinHash of the anonymized prompt; kept by the first case of each group only.
    signature = models.BinaryField(null=True, blank=True)
    priority = models.IntegerField(default=0)
    skips = models.PositiveIntegerField(default=0)  # a skipped case goes behind the others
    kind = models.CharField(max_length=60, blank=True)  # of the latest label in force
    severity = models.CharField(max_length=20, blank=True)
    leased_by = models.CharField(max_length=150, blank=True)  # the actor's name: a person or a key
    lease_token = models.CharField(max_length=32, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["project", "state", "skips", "-priority", "id"], name="case_queue"),
            models.Index(fields=["project", "group_key"], name="case_group"),
        ]

    def __str__(self) -> str:
        return f"case {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("feedback:case", args=[self.pk])

    @property
    def lineage_key(self) -> str:
        return f"feedback.case:{self.pk}"


class Label(models.Model):
    """One decision about a case. History is kept: an undone or replaced label stays as a row."""

    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="labels")
    schema_number = models.PositiveIntegerField()
    kind = models.CharField(max_length=60)
    severity = models.CharField(max_length=20)
    correction = models.TextField(blank=True)
    note = models.TextField(blank=True)
    by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["case", "by"], condition=Q(undone_at=None), name="label_one_in_force"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.severity})"


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


# Registered with the others; in files of their own because they are other nouns.
from apps.feedback.judge_models import Calibration as Calibration  # noqa: E402
from apps.feedback.judge_models import GoldAnswer as GoldAnswer  # noqa: E402
from apps.feedback.judge_models import Judge as Judge  # noqa: E402
from apps.feedback.judge_models import JudgedAnswer as JudgedAnswer  # noqa: E402
from apps.feedback.verifier_models import AgreementRow as AgreementRow  # noqa: E402
from apps.feedback.verifier_models import VerifierAgreement as VerifierAgreement  # noqa: E402
from apps.feedback.verifier_models import VerifierTrial as VerifierTrial  # noqa: E402
