"""Reads of probes with their rounds, and of what was changed here around a round."""

from datetime import timedelta

from django.db.models import OuterRef, Q, QuerySet, Subquery

from apps.core.models import AuditEvent, Project
from apps.evals.models import Probe, ProbeRound

_SILENT = (ProbeRound.Verdict.UNMEASURED, ProbeRound.Verdict.PARTIAL)
_CHANGES = ("endpoint.change", "engines.register", "version.promote", "version.roll_back")
CHANGES_SHOWN = 10


def probes_of(project: Project) -> QuerySet[Probe]:
    """Probes, newest first, with ``last_round`` (an id) and the verdicts of the last two rounds that say
    something, ``telling`` and ``telling_before``."""
    rounds = ProbeRound.objects.filter(probe=OuterRef("pk")).order_by("-pk")
    telling = rounds.exclude(verdict__in=_SILENT).values("verdict")
    return (
        Probe.objects.filter(project=project)
        .select_related("deployment", "version", "project")
        .annotate(
            last_round=Subquery(rounds.values("pk")[:1]),
            telling=Subquery(telling[:1]),
            telling_before=Subquery(telling[1:2]),
        )
    )


def probe_changes(round_: ProbeRound) -> list[AuditEvent]:
    """What people changed here that may explain ``round_``: since the last round that was unchanged or
    took the reference, newest first."""
    probe = round_.probe
    calm = probe.rounds.filter(pk__lt=round_.pk, verdict__in=["unchanged", "reference"]).first()
    since = calm.created_at if calm else round_.created_at - timedelta(days=1)
    about = Q(object_type="versions.deployment", object_id=str(probe.deployment_id)) | Q(action__in=_CHANGES)
    rows = AuditEvent.objects.filter(about, project=probe.project_id, created_at__gte=since)
    return list(rows.filter(created_at__lte=round_.created_at)[:CHANGES_SHOWN])
