"""What the gateway reports: one row per operation, its text as ciphertext or not at all."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.events import publish
from apps.core.models import Project
from apps.feedback.captures import captures_store, cluster_key
from apps.feedback.models import Capture, HeldExchange, Inference
from apps.feedback.signals import signals_join
from apps.versions.models import ModelVersion, Release
from apps.versions.services import UnitObservation, release_units_record

logger = logging.getLogger(__name__)

HELD_FOR = timedelta(hours=1)
Row = Mapping[str, Any]


def inferences_ingest(rows: Iterable[Row]) -> int:
    """Store the gateway's rows; returns how many were new. A row taken twice is one row.

    Failed and sampled exchanges become captures, others are held for an hour in case feedback
    comes. Query count depends on the number of projects, not of rows.
    """
    by_project: dict[int, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_project[row["project_id"]].setdefault(row["operation"], row)
    projects = Project.objects.in_bulk(list(by_project))
    taken = 0
    for project_id, operations in by_project.items():
        if project_id not in projects:
            logger.warning("spool rows of an unknown project project=%s rows=%s", project_id, len(operations))
            continue
        with transaction.atomic():
            taken += _ingest(projects[project_id], operations)
    return taken


def _ingest(project: Project, rows: Mapping[str, Row]) -> int:
    known = set(Inference.objects.filter(operation__in=list(rows)).values_list("operation", flat=True))
    new = [row for operation, row in rows.items() if operation not in known]
    if not new:
        return 0
    versions = _existing(ModelVersion, project, {row.get("version_id") for row in new})
    releases = _existing(Release, project, {row.get("release_id") for row in new})
    Inference.objects.bulk_create(
        [_inference(project, row, versions, releases) for row in new], ignore_conflicts=True, batch_size=200
    )
    kept = [row for row in new if row.get("content")]
    reasons = {row["operation"]: _capture_reason(row) for row in kept}
    captures_store(
        captures=[
            _capture(project, row, versions, failed=reasons[row["operation"]] == "failure")
            for row in kept
            if reasons[row["operation"]] in ("failure", "sample")
        ]
    )
    HeldExchange.objects.bulk_create(
        [_held(project, row) for row in kept if reasons[row["operation"]] == "held"],
        ignore_conflicts=True,
        batch_size=200,
    )
    release_units_record(
        observations=[
            UnitObservation(
                release_id=row["release_id"],
                segment=row["segment"],
                unit=row["unit"],
                arm=row.get("assigned_arm") or "",
                failure="error" if _failed(row) or row.get("assigned_failed") else "",
            )
            for row in new
            if row.get("release_id") in releases and row.get("segment") is not None
        ]
    )
    signals_join(project=project, operations=[row["operation"] for row in new])
    publish(project=project, topic="feedback.inferences", kind="InferencesTaken", count=len(new))
    return len(new)


def _capture_reason(row: Row) -> str:
    """``failure``, ``sample``, ``held`` or "": the gateway's word, or the same rule for rows without one."""
    return str(row["capture"]) if row.get("capture") is not None else "failure" if _failed(row) else "held"


def _failed(row: Row) -> bool:
    if "failed" in row:
        return bool(row["failed"])
    return bool(row.get("error")) or int(row["status"]) >= 500


def _existing(model: Any, project: Project, ids: set[Any]) -> set[int]:
    wanted = [pk for pk in ids if pk is not None]
    if not wanted:
        return set()
    return set(model.objects.filter(project=project, pk__in=wanted).values_list("pk", flat=True))


def _inference(project: Project, row: Row, versions: set[int], releases: set[int]) -> Inference:
    return Inference(
        project=project,
        operation=row["operation"],
        family=cluster_key((row.get("family") or "")[:100]),
        task_type=(row.get("task_type") or "")[:20],
        unit=row.get("unit") or "",
        version_id=row["version_id"] if row.get("version_id") in versions else None,
        edition_kind=row.get("edition_kind") or "",
        release_id=row["release_id"] if row.get("release_id") in releases else None,
        segment=row.get("segment"),
        assigned_arm=row.get("assigned_arm") or "",
        served_arm=row.get("served_arm") or "",
        revision=row.get("revision"),
        status=row["status"],
        error=(row.get("error") or "")[:60],
        attempts=row.get("attempts") or [],
        streamed=bool(row.get("streamed")),
        prompt_tokens=row.get("prompt_tokens"),
        completion_tokens=row.get("completion_tokens"),
        ttft_ms=row.get("ttft_ms"),
        latency_ms=row.get("latency_ms"),
        started_at=datetime.fromisoformat(row["started_at"]),
    )


def _capture(project: Project, row: Row, versions: set[int], *, failed: bool) -> Capture:
    return Capture(
        project=project,
        source=Capture.Source.GATEWAY,
        external_id=_external_id(row),
        operation=row["operation"],
        family=cluster_key((row.get("family") or "")[:100]),
        cluster=cluster_key((row.get("source") or "")[:120]),
        failed=failed,
        version_id=row["version_id"] if row.get("version_id") in versions else None,
        raw=row["content"].encode("ascii"),
        raw_expires_at=timezone.now() + timedelta(hours=settings.RAW_TTL_HOURS),
    )


def _held(project: Project, row: Row) -> HeldExchange:
    return HeldExchange(
        project=project,
        operation=row["operation"],
        external_id=_external_id(row),
        cluster=cluster_key((row.get("source") or "")[:120]),
        raw=row["content"].encode("ascii"),
        expires_at=timezone.now() + HELD_FOR,
    )


def _external_id(row: Row) -> str:
    """The caller's id if it is nobody's data: two operations with one id are one capture."""
    return cluster_key((row.get("external_id") or "")[:120]) or str(row["operation"])
