"""What Versions puts on pages of others: the rail's count, the Loop's stages, what needs a person."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from apps.core.models import Alert, Project
from apps.versions.models import Release
from apps.versions.selectors import running_release, version_in_service
from apps.versions.services.releases import ROLLBACK_ALERT, rollback_alert_key
from apps.versions.wording import percent

HOLDING_LONG = timedelta(hours=1)


def nav_count(project: Project) -> str:
    """The canary's share while one runs, for example "10 %"."""
    weights = Release.objects.filter(project=project, state=Release.State.RUNNING)
    release = weights.only("state", "warming", "plan", "step_index").first()
    return percent(release.weight) if release else ""


def versions_stage(project: Project) -> Mapping[str, Any]:
    version, release = version_in_service(project), running_release(project)
    return {
        "value": version.number if version else "–",
        "note": f"{release.candidate} in canary"
        if release
        else "in service"
        if version
        else "none in service",
        "url": reverse("versions:list"),
        "tone": "" if version else "warn",
    }


def canary_stage(project: Project) -> Mapping[str, Any]:
    release = running_release(project)
    if release is not None:
        word = "paused" if release.paused else "warming up" if release.warming else "holding"
        note = f"{word}, {release.evidence.get('units', 0):,} units"
        return {"value": percent(release.weight), "note": note, "url": release.get_absolute_url(), "tone": ""}
    last = Release.objects.filter(project=project).select_related("candidate").first()
    if last is None:
        return {"value": "–", "note": "no release yet", "url": reverse("versions:list"), "tone": ""}
    return {
        "value": "–",
        "note": f"{last.candidate} {last.get_state_display().lower()}",
        "url": last.get_absolute_url(),
        "tone": "fail" if _unseen(project).filter(key=rollback_alert_key(last)).exists() else "",
    }


def waiting_rows(project: Project) -> list[Mapping[str, Any]]:
    """A release that holds for long, and rollbacks that nobody has looked at."""
    rows: list[Mapping[str, Any]] = []
    release = running_release(project)
    if release is not None and timezone.now() - release.step_started_at > HOLDING_LONG:
        at = "is still warming up" if release.warming else f"holds at {percent(release.weight)}"
        rows.append(
            {
                "what": f"Release {release.number} of {release.candidate} {at}",
                "why": " ".join(release.reasons),
                "since": release.step_started_at,
                "url": release.get_absolute_url(),
                "action": "Watch",
            }
        )
    for alert in _unseen(project):
        rows.append(
            {
                "what": alert.title,
                "why": alert.detail,
                "since": alert.created_at,
                "url": alert.url,
                "action": "Look at it",
            }
        )
    return rows


def _unseen(project: Project) -> QuerySet[Alert]:
    """Rollbacks that nobody has looked at."""
    return Alert.objects.filter(project=project, key__startswith=f"{ROLLBACK_ALERT}:", resolved_at=None)
