"""What every room shares: people, projects, keys, audit, events, work units, lineage, alerts."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import F, Q


class User(AbstractUser):
    """A person. ``theme`` is kept here so that a page is drawn right the first time."""

    class Theme(models.TextChoices):
        SYSTEM = "system", "System"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    theme = models.CharField(max_length=10, choices=Theme.choices, default=Theme.SYSTEM)

    def __str__(self) -> str:
        return self.get_full_name() or self.username


class Role(models.TextChoices):
    """Ordered from least to most; ``domain`` of each is in ``core.permissions``."""

    VIEWER = "viewer", "Viewer"
    LABELLER = "labeller", "Labeller"
    ENGINEER = "engineer", "Engineer"
    RELEASE_MANAGER = "release_manager", "Release manager"
    ADMIN = "admin", "Admin"


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, user: User) -> "ProjectQuerySet":
        return self.filter(memberships__user=user).distinct()


class Project(models.Model):
    """The tenant: everything else belongs to one project."""

    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["user__username"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_one_per_user"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project} as {self.get_role_display()}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def active(self) -> "ApiKeyQuerySet":
        return self.filter(revoked_at=None)


class ApiKey(models.Model):
    """A key of a project. Only its SHA-256 is stored; ``prefix`` lets people recognise it.

    ``scopes`` holds values of ``core.permissions.Scope``. The keys carry 256 bits of
    randomness, so a plain hash is enough.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AppendOnlyQuerySet(models.QuerySet[Any]):
    def update(self, **_: Any) -> int:
        raise TypeError("this table is append-only")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("this table is append-only")


class AuditEvent(models.Model):
    """Who did what to which object, with the reason given. Append-only; never holds captured text."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, related_name="audit_events")
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=80)
    object_type = models.CharField(max_length=60, blank=True)
    object_id = models.CharField(max_length=80, blank=True)
    detail = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["project", "-created_at", "-id"], name="audit_recent"),
            models.Index(fields=["object_type", "object_id"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.object_type} {self.object_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("audit events are append-only")
        super().save(*args, **kwargs)


class Event(models.Model):
    """Progress as a log: pages resume from their last id. ``topic`` is ``<app>.<object>:<id>``."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="events")
    topic = models.CharField(max_length=80)
    kind = models.CharField(max_length=60)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        indexes: ClassVar = [models.Index(fields=["project", "id"], name="event_tail")]

    def __str__(self) -> str:
        return f"{self.kind} on {self.topic}"


class WorkUnitQuerySet(models.QuerySet["WorkUnit"]):
    def open(self) -> "WorkUnitQuerySet":
        return self.filter(state__in=["pending", "sent", "running"])

    def in_flight(self) -> "WorkUnitQuerySet":
        return self.filter(state__in=["sent", "running"])


class WorkUnit(models.Model):
    """One idempotent piece of heavy work. The row is the truth, a queue message only a hint.

    ``key`` is unique: planning the same work twice finds the same row. ``owner`` is the thing
    it belongs to, as ``<app>.<object>:<id>``. Reports of attempts other than ``attempt`` are
    discarded.
    """

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        SENT = "sent", "Sent"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="units")
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=200, unique=True)
    owner = models.CharField(max_length=80)
    queue = models.CharField(max_length=20)
    priority = models.IntegerField(default=0)
    payload = models.JSONField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.PENDING)
    attempt = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=5)
    worker = models.CharField(max_length=120, blank=True)
    progress = models.JSONField(default=dict)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    not_before = models.DateTimeField(null=True, blank=True)  # pause before the next attempt
    sent_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = WorkUnitQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-priority", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sent", "running", "done", "failed", "cancelled"]),
                name="unit_state_known",
            ),
            models.CheckConstraint(condition=Q(attempt__lte=F("max_attempts")), name="unit_attempts_bounded"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["queue", "state", "-priority", "id"], name="unit_pick"),
            models.Index(fields=["owner", "state"], name="unit_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key} ({self.state})"


class LineageEdge(models.Model):
    """``parent`` led to ``child``. Nodes are ``<app>.<object>:<id>`` with a label and a URL to show."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="lineage")
    parent = models.CharField(max_length=80)
    parent_label = models.CharField(max_length=120)
    parent_url = models.CharField(max_length=200, blank=True)
    child = models.CharField(max_length=80)
    child_label = models.CharField(max_length=120)
    child_url = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["parent", "child"], name="lineage_edge_once")
        ]
        indexes: ClassVar = [models.Index(fields=["child"], name="lineage_child")]

    def __str__(self) -> str:
        return f"{self.parent} → {self.child}"


class Alert(models.Model):
    """Something a person should look at. One open alert per key."""

    class Level(models.TextChoices):
        INFO = "info", "Info"
        WARN = "warn", "Warning"
        FAIL = "fail", "Failure"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="alerts")
    key = models.CharField(max_length=120)
    level = models.CharField(max_length=5, choices=Level.choices, default=Level.WARN)
    title = models.CharField(max_length=200)
    detail = models.TextField(blank=True)
    url = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "key"], condition=Q(resolved_at=None), name="alert_one_open_per_key"
            )
        ]

    def __str__(self) -> str:
        return self.title
