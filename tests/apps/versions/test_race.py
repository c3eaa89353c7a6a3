"""Two workers evaluate one release at the same moment: one promotion, one revision, one audit row.

The test's own database lives in memory, where threads cannot wait for each other; the race runs
on a copy of it in a file, with the options that an embedded installation uses. A database server
needs no copy.
"""

import sqlite3
import threading
from pathlib import Path

import pytest
from django.db import connections

from apps.core.models import AuditEvent
from apps.versions import services
from apps.versions.models import Release, RoutingRevision, ServiceChange
from tests.apps.versions.traffic import traffic
from tests.waiting import GUARD_S

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_workers_at_once_promote_once(release: Release, tmp_path: Path):
    traffic(release, canary=(60, 2), control=(540, 20))
    services.release_evaluate(release=release)
    release.refresh_from_db()
    traffic(release, canary=(120, 4), control=(120, 5))
    revisions = RoutingRevision.objects.count()
    file = copy_of_database(tmp_path)

    outcomes = at_once(4, file, lambda: services.release_evaluate(release=Release.objects.get()).state)

    assert outcomes == ["promoted"] * 4
    assert on_copy(
        file,
        lambda: (
            ServiceChange.objects.filter(release=release).count(),
            AuditEvent.objects.filter(action="release.promote").count(),
            RoutingRevision.objects.count() - revisions,
        ),
    ) == (1, 1, 1)


def test_two_workers_at_once_roll_back_once(release: Release, tmp_path: Path):
    traffic(release, canary=(60, 40), control=(540, 20))
    revisions = RoutingRevision.objects.count()
    file = copy_of_database(tmp_path)

    outcomes = at_once(4, file, lambda: services.release_evaluate(release=Release.objects.get()).state)

    assert outcomes == ["rolled_back"] * 4
    assert on_copy(
        file,
        lambda: (
            AuditEvent.objects.filter(action="release.roll_back").count(),
            RoutingRevision.objects.count() - revisions,
        ),
    ) == (1, 1)


def copy_of_database(folder: Path) -> Path | None:
    """None on a database server, where threads meet in the test's own database."""
    if connections["default"].vendor != "sqlite":
        return None
    file = folder / "copy.sqlite3"
    connections["default"].ensure_connection()
    with sqlite3.connect(file) as target:
        connections["default"].connection.backup(target)
    return file


def on_copy(file: Path | None, work):  # type: ignore[no-untyped-def]
    """Run ``work`` in a thread whose connection is the file."""
    return at_once(1, file, work)[0]


def at_once(threads: int, file: Path | None, work):  # type: ignore[no-untyped-def]
    barrier = threading.Barrier(threads)
    outcomes: list[object] = []

    def run() -> None:
        original = connections["default"]
        own = original
        if file is not None:
            own = type(original)({**original.settings_dict, "NAME": str(file)}, "default")
            connections["default"] = own
        try:
            barrier.wait(timeout=GUARD_S)
            outcomes.append(work())
        except Exception as error:
            outcomes.append(error)
        finally:
            own.close()

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=GUARD_S)
    return outcomes
