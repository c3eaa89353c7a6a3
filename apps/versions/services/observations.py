"""Units of traffic as a release sees them: each counts once, where it was first seen."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.db import transaction
from django.db.models import F

from apps.versions.models import Release, ReleaseUnit

ARMS = ("control", "canary")


@dataclass(frozen=True)
class UnitObservation:
    """Operations of one unit. ``arm`` is the one assigned, whoever served; ``segment`` and
    ``release_id`` are those of the routing revision that the operations ran under.

    ``failure`` names the signal (error, negative_feedback, correction, …), empty for none.
    Feedback that comes later is an observation with ``operations=0``.
    """

    release_id: int
    segment: int
    unit: str
    arm: str
    failure: str = ""
    operations: int = 1


_FIELDS = tuple(field.name for field in fields(UnitObservation))


def release_units_record(*, observations: Iterable[UnitObservation | Mapping[str, Any]]) -> int:
    """Add observations to running releases; returns how many were used.

    A failure counts only in the segment and arm where its unit counts: a unit that a ramp moved to
    the canary since then would otherwise blame the arm it left. Only the first failure of a unit
    counts, and only signals that the release's plan names. Observations of releases that have ended,
    and of unknown arms (shadow traffic), are left out.
    """
    rows = [_read(row) for row in observations]
    plans = {
        release.pk: set(release.plan["failure_signals"])
        for release in Release.objects.filter(
            pk__in={row.release_id for row in rows}, state=Release.State.RUNNING
        )
    }
    rows = [
        row for row in rows if row.release_id in plans and row.arm in ARMS and row.segment >= 0 and row.unit
    ]
    if not rows:
        return 0
    first: dict[tuple[int, str], UnitObservation] = {}
    for row in rows:
        first.setdefault((row.release_id, row.unit), row)
    with transaction.atomic():
        # Sorted, so that two writers take their locks in one order.
        ReleaseUnit.objects.bulk_create(
            (
                ReleaseUnit(release_id=row.release_id, unit=row.unit, segment=row.segment, arm=row.arm)
                for _, row in sorted(first.items())
            ),
            ignore_conflicts=True,
            batch_size=500,
        )
        _count_operations(rows)
        _mark_failures([row for row in rows if row.failure in plans[row.release_id]])
    return len(rows)


def _read(row: UnitObservation | Mapping[str, Any]) -> UnitObservation:
    if isinstance(row, UnitObservation):
        return row
    return UnitObservation(**{name: row[name] for name in _FIELDS if name in row})


def _count_operations(rows: list[UnitObservation]) -> None:
    totals: dict[tuple[int, str], int] = defaultdict(int)
    for row in rows:
        totals[row.release_id, row.unit] += row.operations
    by_count: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (release_id, unit), operations in totals.items():
        if operations > 0:
            by_count[release_id, operations].append(unit)
    for (release_id, operations), units in sorted(by_count.items()):
        for chunk in _chunks(units):
            ReleaseUnit.objects.filter(release_id=release_id, unit__in=chunk).update(
                operations=F("operations") + operations
            )


def _mark_failures(rows: list[UnitObservation]) -> None:
    groups: dict[tuple[int, int, str, str], list[str]] = defaultdict(list)
    for row in rows:
        groups[row.release_id, row.segment, row.arm, row.failure].append(row.unit)
    for (release_id, segment, arm, failure), units in groups.items():
        for chunk in _chunks(units):
            ReleaseUnit.objects.filter(
                release_id=release_id, segment=segment, arm=arm, unit__in=chunk, failed=False
            ).update(failed=True, failure=failure)


def _chunks(units: list[str], size: int = 500) -> Iterable[list[str]]:
    units = sorted(set(units))
    return (units[start : start + size] for start in range(0, len(units), size))
