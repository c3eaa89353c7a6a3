"""Failure cases: opening them, taking them to work on (leases), putting them back.

A lease is one atomic claim on a row, so two people never get the same case. Leaves out what is
decided about a case (``labels``).
"""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.db import connection, transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from apps.core.errors import Conflict
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback import grouping
from apps.feedback.contents import prompt_text
from apps.feedback.models import Capture, FailureCase

LEASE = timedelta(minutes=10)
_FOUNDERS = 1000


class Taken(NamedTuple):
    """A case to work on, or why there is none: all are leased until ``retry_at``, or nothing is left."""

    case: FailureCase | None
    retry_at: datetime | None = None


def case_open(*, capture: Capture) -> FailureCase:
    """The case of an anonymized failure; opening it again returns the same one."""
    assert capture.content is not None
    text = prompt_text(capture.content)
    existing = FailureCase.objects.filter(capture=capture).first()
    if existing is not None:
        return existing
    sig = grouping.signature(text, capture.family)
    group, founder = _group(capture.project, sig)
    with transaction.atomic():
        case, created = FailureCase.objects.get_or_create(
            capture=capture,
            defaults={
                "project": capture.project,
                "family": capture.family,
                "title": _title(text),
                "group_key": group,
                "signature": sig.tobytes() if founder else None,
            },
        )
        if not created:
            return case
        lineage_record(project=case.project, parent=capture_node(capture), child=case_node(case))
        publish(project=case.project, topic="feedback.cases", kind="CaseOpened", case=case.pk)
    return case


def queue_next(*, project: Project, by: Actor, family: str = "", exclude: int | None = None) -> Taken:
    """Lease the next case to ``by``. "All locked" carries the moment when the first lease ends."""
    for _ in range(20):
        now = timezone.now()
        waiting = _waiting(project, family)
        if exclude is not None:
            waiting = waiting.exclude(pk=exclude)
        mine = waiting.filter(leased_by=by.name, leased_until__gt=now).order_by("skips", "-priority", "pk")
        held = mine.first()
        if held is not None:
            return Taken(_extend(held))
        free = waiting.filter(Q(leased_until=None) | Q(leased_until__lte=now))
        case = _claim(free, by)
        if case is not None:
            return Taken(case)
        if not free.exists():
            ends = waiting.filter(leased_until__gt=now).aggregate(at=Min("leased_until"))["at"]
            return Taken(None, ends)
    raise Conflict("The queue is very busy. Ask again.", code="queue_busy")


def case_lease(*, case: FailureCase, by: Actor) -> FailureCase:
    """Lease this very case, or extend a lease of one's own (the heartbeat)."""
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lte=now) | Q(leased_by=by.name)
    token = case.lease_token if case.leased_by == by.name and case.lease_token else secrets.token_hex(8)
    claimed = FailureCase.objects.filter(free, pk=case.pk).update(
        leased_by=by.name, leased_until=now + LEASE, lease_token=token
    )
    case.refresh_from_db()
    if not claimed:
        raise Conflict(
            f"{case.leased_by} is working on this case until {case.leased_until:%H:%M} UTC.",
            code="case_leased",
            retry_at=case.leased_until.isoformat() if case.leased_until else "",
        )
    return case


def case_release(*, case: FailureCase, by: Actor) -> None:
    """Give a lease of one's own back."""
    FailureCase.objects.filter(pk=case.pk, leased_by=by.name).update(
        leased_by="", leased_until=None, lease_token=""
    )


def case_skip(*, case: FailureCase, by: Actor) -> None:
    """Put the case behind the others; nobody decided anything about it."""
    check_lease(case=case, by=by)
    with transaction.atomic():
        FailureCase.objects.filter(pk=case.pk).update(
            skips=F("skips") + 1, leased_by="", leased_until=None, lease_token=""
        )
        audit(actor=by, action="case.skip", obj=case)


def check_lease(*, case: FailureCase, by: Actor) -> None:
    """Raise ``Conflict`` while somebody else works on ``case``."""
    until = case.leased_until
    if case.leased_by not in ("", by.name) and until is not None and until > timezone.now():
        raise Conflict(
            f"{case.leased_by} is working on this case until {until:%H:%M} UTC.",
            code="case_leased",
            retry_at=until.isoformat(),
        )


def capture_node(capture: Capture) -> Node:
    return Node(f"feedback.capture:{capture.pk}", f"Capture {capture.pk}", "")


def case_node(case: FailureCase) -> Node:
    return Node(case.lineage_key, f"Case {case.pk}", case.get_absolute_url())


def _waiting(project: Project, family: str) -> QuerySet[FailureCase]:
    waiting = FailureCase.objects.filter(project=project, state=FailureCase.State.NEW)
    return waiting.filter(family=family) if family else waiting


def _claim(free: QuerySet[FailureCase], by: Actor) -> FailureCase | None:
    """Take one row for oneself: skip rows locked by others where the database can, else compare and set."""
    with transaction.atomic():
        ordered = free.order_by("skips", "-priority", "pk")
        if connection.features.has_select_for_update_skip_locked:
            ordered = ordered.select_for_update(skip_locked=True, of=("self",))
        candidate = ordered.values_list("pk", "lease_token").first()
        if candidate is None:
            return None
        pk, token = candidate
        claimed = FailureCase.objects.filter(pk=pk, lease_token=token, state=FailureCase.State.NEW).update(
            leased_by=by.name, leased_until=timezone.now() + LEASE, lease_token=secrets.token_hex(8)
        )
        return FailureCase.objects.select_related("capture").get(pk=pk) if claimed else None


def _extend(case: FailureCase) -> FailureCase:
    FailureCase.objects.filter(pk=case.pk, lease_token=case.lease_token).update(
        leased_until=timezone.now() + LEASE
    )
    return FailureCase.objects.select_related("capture").get(pk=case.pk)


def _group(project: Project, sig: grouping.Signature) -> tuple[str, bool]:
    """The group of the most similar founder among the latest, and whether ``sig`` founds a new one."""
    founders = list(
        FailureCase.objects.filter(project=project, signature__isnull=False)
        .order_by("-pk")
        .values_list("group_key", "signature")[:_FOUNDERS]
    )
    if founders:
        rows = np.stack([np.frombuffer(row[1] or b"", dtype=np.uint32) for row in founders])
        alike = grouping.similarity(sig, rows)
        best = int(alike.argmax())
        if alike[best] >= grouping.ALIKE:
            return founders[best][0], False
    return grouping.key_of(sig), True


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99].rsplit(" ", 1)[0] + "…"
