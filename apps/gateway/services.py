"""Writes of the gateway: what processes report about themselves, losses, limits of keys."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.errors import Refused
from apps.core.models import ApiKey, Project
from apps.core.permissions import Actor
from apps.core.services import alert_raise, audit
from apps.gateway.ingest import Ingested, spool_ingest
from apps.gateway.models import GatewayInstance, KeyLimit

FORGOTTEN_AFTER = timedelta(hours=1)


def instance_report(
    *, name: str, started_at: datetime, revisions: dict[int, int], in_flight: int, rows_lost: int
) -> None:
    """Say that process ``name`` lives and which routing revision of each project it serves."""
    now = timezone.now()
    GatewayInstance.objects.update_or_create(
        name=name,
        defaults={
            "revisions": {str(project_id): number for project_id, number in revisions.items()},
            "in_flight": in_flight,
            "rows_lost": rows_lost,
            "started_at": started_at,
            "seen_at": now,
        },
    )
    GatewayInstance.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()


def keys_used(*, key_ids: set[int]) -> None:
    """Note that these API keys were used just now."""
    if key_ids:
        ApiKey.objects.filter(pk__in=key_ids).update(last_used_at=timezone.now())


def instance_gone(*, name: str) -> None:
    """The process ends in order: nobody waits for it any more."""
    GatewayInstance.objects.filter(name=name).delete()


def losses_alert(*, losses: dict[int, int], cause: str, where: str = "") -> None:
    """Tell each project how many of its log rows were lost. Requests were served all the same."""
    for project in Project.objects.filter(pk__in=losses):
        alert_raise(
            project=project,
            key=f"gateway.rows_lost:{cause}:{where}"[:120],
            title="The gateway lost log rows",
            detail=f"{losses[project.pk]} operations were served but not logged. {_CAUSES[cause]}",
            level="fail",
        )


_CAUSES = {
    "disk": "The spool could not be written: check the free space of the data folder.",
    "rejected": "The database refused them; they are kept as .rejected files in the spool folder.",
}


def spool_ingest_tick() -> Ingested:
    """Bring closed spool files into the database; running twice at once is harmless."""
    result = spool_ingest(settings.SPOOL_DIR)
    if result.rejected_by_project:
        losses_alert(losses=result.rejected_by_project, cause="rejected")
    return result


def key_limit_set(
    *, key: ApiKey, requests_per_minute: int, tokens_per_minute: int, in_flight: int, by: Actor
) -> KeyLimit:
    """Limit one key; in force on every gateway process within a second."""
    values = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "in_flight": in_flight,
    }
    for name, value in values.items():
        if not 1 <= value <= 2_000_000_000:
            raise Refused(f"{name} must be between 1 and 2,000,000,000.", code="limit_out_of_range")
    with transaction.atomic():
        limit, _ = KeyLimit.objects.update_or_create(key=key, defaults=values)
        audit(
            actor=by,
            action="key_limit.set",
            obj=key,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            in_flight=in_flight,
        )
    return limit


def key_limit_clear(*, key: ApiKey, by: Actor) -> None:
    """Back to the installation's limits. Idempotent."""
    with transaction.atomic():
        deleted, _ = KeyLimit.objects.filter(key=key).delete()
        if deleted:
            audit(actor=by, action="key_limit.clear", obj=key)
