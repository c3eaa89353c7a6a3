"""What Evals puts on pages of others: the rail's count, and what needs a person."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.core.models import Alert, Project
from apps.evals.models import Run

FAILED_FOR = timedelta(days=7)
_SHOWN = 5


def nav_count(project: Project) -> str:
    """How many runs go on, for example "2 live"."""
    running = Run.objects.filter(project=project, state=Run.State.RUNNING).count()
    return f"{running} live" if running else ""


def waiting_rows(project: Project) -> list[Mapping[str, Any]]:
    """Runs of the last week in which nothing could be scored, and probes that alarm."""
    since = timezone.now() - FAILED_FOR
    failed = Run.objects.filter(project=project, state=Run.State.FAILED, finished_at__gte=since)
    rows: list[Mapping[str, Any]] = [
        {
            "what": f"Run {run.pk} of {run.suite_version} failed",
            "why": run.error,
            "since": run.finished_at,
            "url": run.get_absolute_url(),
            "action": "Retry",
        }
        for run in failed.select_related("suite_version__suite")[:_SHOWN]
    ]
    alerts = Alert.objects.filter(project=project, key__startswith="probe:", resolved_at=None)
    rows += [
        {
            "what": alert.title,
            "why": alert.detail,
            "since": alert.created_at,
            "url": alert.url,
            "action": "Look at it",
        }
        for alert in alerts
    ]
    return rows
