"""Reads of the Settings pages."""

from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.core.models import AuditEvent, Project, WorkUnit


def audit_rows(project: Project, *, q: str = "", action: str = "", actor: str = "") -> QuerySet[AuditEvent]:
    """The audit trail, newest first. ``q`` looks in object, action, actor and reason."""
    rows = AuditEvent.objects.filter(project=project)
    if action:
        rows = rows.filter(action=action)
    if actor:
        rows = rows.filter(actor=actor)
    if q:
        rows = rows.filter(
            Q(object_id=q)
            | Q(object_type__icontains=q)
            | Q(action__icontains=q)
            | Q(actor__icontains=q)
            | Q(reason__icontains=q)
        )
    return rows


def audit_choices(project: Project) -> dict[str, list[str]]:
    """The actions and actors that occur, for the filters."""
    rows = AuditEvent.objects.filter(project=project)
    return {
        "actions": list(rows.order_by("action").values_list("action", flat=True).distinct()),
        "actors": list(rows.order_by("actor").values_list("actor", flat=True).distinct()),
    }


def unit_rows(project: Project, *, q: str = "", state: str = "", kind: str = "") -> QuerySet[WorkUnit]:
    """Work units, newest first, without their payloads."""
    rows = WorkUnit.objects.filter(project=project).defer("payload", "result").order_by("-pk")
    if state:
        rows = rows.filter(state=state)
    if kind:
        rows = rows.filter(kind=kind)
    if q:
        rows = rows.filter(Q(key__icontains=q) | Q(owner__icontains=q) | Q(worker__icontains=q))
    return rows


def unit_counts(project: Project) -> dict[str, int]:
    """How many units are in each state, every state named."""
    found: dict[str, Any] = dict(
        WorkUnit.objects.filter(project=project)
        .order_by()
        .values_list("state")
        .annotate(n=Count("pk"))
        .values_list("state", "n")
    )
    return {state: found.get(state, 0) for state in WorkUnit.State.values}


def unit_kinds(project: Project) -> list[str]:
    return list(
        WorkUnit.objects.filter(project=project).order_by("kind").values_list("kind", flat=True).distinct()
    )
