"""What gateway processes say about themselves, and limits of single keys."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.core.models import ApiKey

# A process reports every 5 s and at once when it takes over a new revision.
ALIVE_FOR = timedelta(seconds=15)


class GatewayInstanceQuerySet(models.QuerySet["GatewayInstance"]):
    def alive(self) -> "GatewayInstanceQuerySet":
        return self.filter(seen_at__gte=timezone.now() - ALIVE_FOR)


class GatewayInstance(models.Model):
    """One gateway process. ``revisions`` maps project id (text) to the routing revision it serves."""

    name = models.CharField(max_length=120, unique=True)  # host, process and start
    revisions = models.JSONField(default=dict)
    in_flight = models.PositiveIntegerField(default=0)
    rows_lost = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = GatewayInstanceQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        indexes: ClassVar = [models.Index(fields=["seen_at"], name="gateway_instance_seen")]

    def __str__(self) -> str:
        return self.name


class KeyLimit(models.Model):
    """Limits of one API key; keys without a row have the installation's. Per gateway process."""

    key = models.OneToOneField(ApiKey, on_delete=models.CASCADE, related_name="gateway_limit")
    requests_per_minute = models.PositiveIntegerField()
    tokens_per_minute = models.PositiveIntegerField()
    in_flight = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(requests_per_minute__gt=0, tokens_per_minute__gt=0, in_flight__gt=0),
                name="key_limit_positive",
            )
        ]

    def __str__(self) -> str:
        return f"limits of {self.key}"
