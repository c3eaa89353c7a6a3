"""What a worker does for an import that is too large for a request: read the files, or store the cases.

Each is a unit of work: a killed worker's attempt is made again, progress is seen on the page, and cases
are stored in one transaction with the end of the import, so there is all of it or nothing.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.crypto import encrypt_json
from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor, system_actor
from apps.core.registries import Progress
from apps.core.services import audit
from apps.core.units import unit_create
from apps.core.web_units import QUEUE
from apps.evals.models import Suite, SuiteImport, SuiteVersion
from apps.evals.services.import_rows import (
    import_take,
    import_tasks,
    left_out_words,
    note_of,
    report_of,
    uploads_of,
)
from apps.evals.services.reading import changes_of, from_json, newest_version, prepare
from apps.evals.services.suites import (
    Staged,
    cases_stage,
    suite_create,
    suite_slug,
    suite_version_store,
    task_digest,
)
from domain.contracts.base import Contract

UNIT = "suite_import"
MOVED = "The suite has a newer version than the one in the preview. It is compared with that one now."
_BUSY = (SuiteImport.State.READING, SuiteImport.State.IMPORTING)


class ImportWork(Contract):
    """``reading`` is the number of the work on the row: a late unit finds another one there."""

    import_id: int
    reading: int


def import_send(row: SuiteImport) -> None:
    """Let a worker go on with ``row``, in the transaction that gave it a new ``reading``."""
    unit_create(
        project=row.project,
        kind=UNIT,
        key=f"suite_import:{row.pk}:{row.reading}",
        owner=row.topic,
        queue=QUEUE,
        message=ImportWork(import_id=row.pk, reading=row.reading),
    )


def suite_import_work(unit: WorkUnit, progress: Progress) -> dict[str, Any]:
    """Run a unit. Running twice, or late, changes nothing. Raises Refused with what is wrong."""
    asked = ImportWork.model_validate(unit.payload)
    rows = SuiteImport.objects.select_related("project", "against")
    mine = rows.filter(pk=asked.import_id, reading=asked.reading)
    found = mine.first()
    if found is not None and found.state == SuiteImport.State.READING:
        _read(found, _told(found, progress))
        found = mine.first()
    if found is not None and found.state == SuiteImport.State.IMPORTING:
        _import(found, _told(found, progress))
    return {}


def suite_import_failed(unit: WorkUnit, error: str) -> None:
    """Say on the row why it is not imported. The files stay until they expire."""
    asked = ImportWork.model_validate(unit.payload)
    rows = SuiteImport.objects.filter(pk=asked.import_id, reading=asked.reading, state__in=_BUSY)
    if rows.update(state=SuiteImport.State.FAILED, error=error):
        publish(project=unit.project, topic=unit.owner, kind="SuiteImportFailed", say="Nothing was imported")


def cases_store(
    *, project: Project, name: str, staged: Staged, note: str, by: Actor, kept: bool, replaced: int
) -> SuiteVersion:
    """The next version of the suite called ``name``, which is made where there is none yet."""
    with transaction.atomic():
        suite = Suite.objects.filter(project=project, slug=suite_slug(name)).first()
        if suite is None:
            suite = suite_create(project=project, name=name, by=by)
        version = suite_version_store(suite=suite, staged=staged, note=note, by=by)
        audit(
            actor=by, action="suite.import", obj=suite, cases=len(staged.tasks), kept_personal_data=kept,
            replaced=replaced,
        )  # fmt: skip
    return version


def import_store(row: SuiteImport, staged: Staged, by: Actor) -> SuiteVersion:
    """The version of what was shown, and the end of the import. The caller holds the lock of the row."""
    report = report_of(row)
    count = len(staged.tasks)
    note = row.options.get("note") or note_of(
        row.filename, count, report["replaced"], report["masked"], report["left_out_count"]
    )
    row.version = cases_store(
        project=row.project,
        name=row.suite_name,
        staged=staged,
        note=note,
        by=by,
        kept=row.keep_personal_data,
        replaced=report["replaced"],
    )
    row.state, row.error = SuiteImport.State.DONE, ""
    row.upload = row.prepared = row.report = None
    row.save()
    return row.version


def import_is_outdated(row: SuiteImport) -> bool:
    """Whether the suite has another newest version than the one that was compared with. What was asked
    for at once was never compared."""
    newest = newest_version(row.project, row.suite_name)
    return not row.at_once and (newest.pk if newest else None) != row.against_id


def import_compare_again(row: SuiteImport) -> None:
    """Show what the import changes against the newest version. The caller holds the lock of the row."""
    newest = newest_version(row.project, row.suite_name)
    report = report_of(row)
    digests = {task.id: task_digest(task) for task in import_tasks(row)}
    report["changes"] = changes_of(newest, digests)._asdict()
    report["against"] = newest.number if newest else None
    row.against, row.report = newest, encrypt_json(report)
    row.save(update_fields=["against", "report"])


def _read(row: SuiteImport, told: Callable[[int, int], None]) -> None:
    choices = from_json(row.options, keep_personal_data=row.keep_personal_data)
    made = prepare(
        project=row.project,
        suite_name=row.suite_name,
        uploads=uploads_of(row),
        choices=choices,
        progress=told,
    )
    if row.at_once and made.left_out:
        parts = [tuple(each) for each in made.left_out]
        raise Refused(left_out_words(row.filename, len(parts), parts), code="import_leaves_out")
    with transaction.atomic():
        locked = _locked(row)
        if locked is None:
            return
        import_take(locked, made)
        if locked.at_once:
            locked.state, locked.done = SuiteImport.State.IMPORTING, 0
        locked.save()
        publish(project=row.project, topic=row.topic, kind="SuiteImportRead", say="The file is read")


def _import(row: SuiteImport, told: Callable[[int, int], None]) -> None:
    """All that takes long comes before the transaction: others write to the database meanwhile."""
    tasks = []
    for task in import_tasks(row):
        tasks.append(task)
        if len(tasks) % 500 == 0:
            told(len(tasks) // 2, row.total)
    staged = cases_stage(tasks, lambda at: told((len(tasks) + at) // 2, row.total))
    by = system_actor(row.project, row.confirmed_by)
    with transaction.atomic():
        locked = _locked(row)
        if locked is None:
            return
        if import_is_outdated(locked):
            import_compare_again(locked)
            locked.state, locked.error = SuiteImport.State.READY, MOVED
            locked.done = locked.total
            locked.save(update_fields=["state", "error", "done"])
            publish(project=row.project, topic=row.topic, kind="SuiteImportMoved", say="Look at it again")
            return
        locked.done = locked.total
        version = import_store(locked, staged, by)
        publish(project=row.project, topic=row.topic, kind="SuiteImported", say=f"{version} is imported")


def _locked(row: SuiteImport) -> SuiteImport | None:
    """The row if it is still what this unit was sent for: not dropped, stopped or read otherwise."""
    rows = SuiteImport.objects.select_for_update(of=("self",)).defer("upload", "prepared")
    rows = rows.select_related("project", "against")
    return rows.filter(pk=row.pk, reading=row.reading, state=row.state).first()


def _told(row: SuiteImport, progress: Progress) -> Callable[[int, int], None]:
    def tell(at: int, of: int) -> None:
        if progress(done=at, total=of):
            mine = SuiteImport.objects.filter(pk=row.pk, reading=row.reading)
            mine.update(done=at, total=of, read_at=timezone.now())
            publish(project=row.project, topic=row.topic, kind="SuiteImportProgress", done=at, total=of)

    return tell
