"""What the Loop page and the rail show of feedback: a few counts, each one query on an index."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Count, Min, Q
from django.urls import reverse
from django.utils import timezone

from apps.core.models import Project
from apps.core.registries import Stage
from apps.feedback.models import Capture, FailureCase, Inference, TaskAsset


def nav_count(project: Project) -> str:
    waiting = FailureCase.objects.filter(project=project, state=FailureCase.State.NEW).count()
    return str(waiting) if waiting else ""


def traffic(project: Project) -> Mapping[str, Any]:
    day = timezone.now() - timedelta(hours=24)
    seen = Inference.objects.filter(project=project, started_at__gte=day).aggregate(
        all=Count("pk"), failed=Count("pk", filter=Q(status__gte=500))
    )
    note = (
        f"{seen['failed']:,} ended in an error"
        if seen["failed"]
        else "no errors"
        if seen["all"]
        else "no requests yet"
    )
    return {
        "value": f"{seen['all']:,}",
        "note": note,
        "url": reverse("feedback:captures"),
        "tone": "fail" if seen["failed"] else "",
    }


def captured(project: Project) -> Mapping[str, Any]:
    states = Capture.objects.filter(project=project).aggregate(
        all=Count("pk"),
        raw=Count("pk", filter=Q(state=Capture.State.RAW)),
        refused=Count("pk", filter=Q(state=Capture.State.REFUSED)),
    )
    note = f"{states['raw']:,} waiting for anonymization" if states["raw"] else "all anonymized"
    if states["refused"]:
        note = f"{states['refused']:,} refused"
    return {
        "value": f"{states['all']:,}",
        "note": note if states["all"] else "nothing captured yet",
        "url": reverse("feedback:captures"),
        "tone": "fail" if states["refused"] else "",
    }


def to_label(project: Project) -> Mapping[str, Any]:
    waiting = FailureCase.objects.filter(project=project, state=FailureCase.State.NEW).aggregate(
        n=Count("pk"), since=Min("created_at")
    )
    return {
        "value": f"{waiting['n']:,}",
        "note": "" if waiting["n"] else "nothing waits",
        "since": waiting["since"],
        "url": reverse("feedback:label") if waiting["n"] else reverse("feedback:inbox"),
        "tone": "warn" if waiting["n"] else "",
    }


def assets(project: Project) -> Mapping[str, Any]:
    split = TaskAsset.objects.filter(project=project, retired_at=None).aggregate(
        all=Count("pk"), held_out=Count("pk", filter=Q(split=TaskAsset.Split.HELD_OUT))
    )
    note = f"{split['held_out']:,} held out" if split["all"] else "no tasks yet"
    return {"value": f"{split['all']:,}", "note": note, "url": reverse("feedback:assets"), "tone": ""}


STAGES = [
    Stage(10, "Traffic, 24 h", traffic, "Point your application at the gateway: it speaks the OpenAI API."),
    Stage(20, "Captured", captured, "Send corrections and ratings, and failures are captured by themselves."),
    Stage(30, "To label", to_label, "Say of each failure what went wrong, and what would have been right."),
    Stage(40, "Tasks", assets, "Make tasks with a verifier of labelled cases, or use those of a pack."),
]


def personal_tasks(project: Project) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    waiting = FailureCase.objects.filter(project=project, state=FailureCase.State.NEW).aggregate(
        n=Count("pk"), since=Min("created_at")
    )
    if waiting["n"]:
        rows.append(
            {
                "what": f"{waiting['n']:,} {'failure' if waiting['n'] == 1 else 'failures'} to label",
                "why": "Only labelled failures become tasks to train on.",
                "since": waiting["since"],
                "url": reverse("feedback:label"),
                "action": "Label next",
            }
        )
    refused = Capture.objects.filter(project=project, state=Capture.State.REFUSED).aggregate(
        n=Count("pk"), since=Min("created_at")
    )
    if refused["n"]:
        rows.append(
            {
                "what": f"{refused['n']:,} {'capture' if refused['n'] == 1 else 'captures'} refused",
                "why": "They could not be anonymized, so their text was deleted.",
                "since": refused["since"],
                "url": reverse("feedback:captures") + "?state=refused",
                "action": "See why",
            }
        )
    return rows
