"""Suites from files: at once, or shown first and then imported exactly as shown.

What is shown is kept encrypted until it is imported or dropped. A preview expires after a day. What
would take a request long, because there is much of it or because personal data must be found in it, is
read and stored by a worker (``import_units``); the page follows its progress.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import units_cancel
from apps.evals.formats import Upload
from apps.evals.models import Suite, SuiteImport, SuiteVersion
from apps.evals.services.import_rows import SHOWN_LEFT_OUT as SHOWN
from apps.evals.services.import_rows import (
    import_open,
    import_take,
    import_tasks,
    left_out_words,
    note_of,
    uploads_named,
    uploads_of,
    uploads_packed,
)
from apps.evals.services.import_units import (
    MOVED,
    cases_store,
    import_compare_again,
    import_is_outdated,
    import_send,
    import_store,
)
from apps.evals.services.lines import Line, parse_lines, refuse, written_lines
from apps.evals.services.masking import CannotMask, masked_lines
from apps.evals.services.reading import Choices, Prepared, as_json, first_look, prepare
from apps.evals.services.suites import cases_stage, suite_slug, suite_version_create
from domain.contracts import TaskSpec

LIFETIME = timedelta(hours=24)
STUCK = timedelta(minutes=30)  # without progress, and without a unit that will make some
_AT_ONCE_BYTES = 16 * 1024  # of what must be masked: some seconds of a request
_AT_ONCE_PLAIN = 1024 * 1024
_AT_ONCE_CASES = 2_000  # to be stored: less than a second
_STUCK_WORDS = {
    SuiteImport.State.READING: "Reading did not come to an end. Read it again, or drop it.",
    SuiteImport.State.IMPORTING: "Importing did not come to an end. Read it again, or drop it.",
}


class Imported(NamedTuple):
    """The version, and how many personal details were replaced in how many of its cases."""

    version: SuiteVersion
    replaced: int
    changed: int


def suite_import_jsonl(
    *, project: Project, name: str, filename: str, data: bytes, by: Actor, keep_personal_data: bool = False
) -> Imported:
    """Import JSONL, one ``TaskSpec`` per line, as the next version of the suite called ``name``.

    Personal data is masked unless ``keep_personal_data`` says that the file may hold it, which is
    recorded. Raises Refused naming file, line and reason; nothing is imported then.
    """
    lines = parse_lines(filename=filename, data=data)
    tasks = [line.task for line in lines]
    replaced = changed = 0
    if not keep_personal_data:
        tasks, replaced, changed = _all_masked(project, lines, filename)
    note = note_of(filename, len(tasks), replaced, changed, 0)
    version = cases_store(
        project=project, name=name, staged=cases_stage(tasks), note=note, by=by, kept=keep_personal_data,
        replaced=replaced,
    )  # fmt: skip
    return Imported(version, replaced, changed)


def suite_import_files(
    *, project: Project, name: str, uploads: Sequence[Upload], choices: Choices, by: Actor
) -> SuiteVersion | SuiteImport:
    """Import files of any format at once, or let a worker do it where a request would wait too long.

    Where something would be left out nothing is imported: that is for a person to see first. Raises
    Refused, or says it on the row that the worker gives up.
    """
    if not _is_small(uploads, choices):
        return suite_import_start(
            project=project, name=name, uploads=uploads, choices=choices, at_once=True, by=by
        )
    made = prepare_now(project, name, uploads, choices)
    if made.left_out:
        parts = [tuple(each) for each in made.left_out]
        raise Refused(
            left_out_words(uploads[0].name, len(parts), parts),
            code="import_leaves_out",
            left_out=[list(part) for part in parts[:SHOWN]],
        )
    note = note_of(uploads_named(uploads), len(made.tasks), made.replaced, made.masked, 0)
    return cases_store(
        project=project, name=name, staged=cases_stage(made.tasks), note=note, by=by,
        kept=choices.keep_personal_data, replaced=made.replaced,
    )  # fmt: skip


def suite_import_tasks(
    *, suite: Suite, tasks: Sequence[TaskSpec], note: str, keep_personal_data: bool, by: Actor
) -> SuiteVersion | SuiteImport:
    """The next version of ``suite`` from cases that came without a file; a worker makes it where a request
    would wait too long. Raises Refused."""
    choices = Choices(keep_personal_data=keep_personal_data, keep_held_out=False)
    uploads = [Upload("cases.jsonl", written_lines(tasks))]
    if not _is_small(uploads, choices):
        return suite_import_start(
            project=suite.project, name=suite.name, uploads=uploads, choices=choices, at_once=True, note=note,
            by=by,
        )  # fmt: skip
    if not keep_personal_data:
        lines = [Line(at, task) for at, task in enumerate(tasks, start=1)]
        tasks = _all_masked(suite.project, lines, "")[0]
    return suite_version_create(suite=suite, tasks=tasks, note=note, by=by)


def suite_import_start(
    *,
    project: Project,
    name: str,
    uploads: Sequence[Upload],
    choices: Choices,
    by: Actor,
    at_once: bool = False,
    note: str = "",
) -> SuiteImport:
    """Read files for a preview: at once where they are small, else by a worker, who also imports them if
    ``at_once`` says so. Raises Refused."""
    if not suite_slug(name.strip()):
        raise Refused("Give the suite a name with letters or digits.", code="name_missing")
    if len(name.strip()) > 100:
        raise Refused("The suite's name is longer than 100 characters.", code="name_too_long")
    choices.checked()
    made = prepare_now(project, name, uploads, choices) if _is_small(uploads, choices) else None
    if made is None:
        first_look(uploads)
    now = timezone.now()
    row = SuiteImport(
        project=project,
        suite_name=name.strip(),
        filename=uploads_named(uploads)[:300],
        options={**as_json(choices), **({"note": note} if note else {})},
        keep_personal_data=choices.keep_personal_data,
        upload=uploads_packed(uploads),
        at_once=at_once,
        created_by=by.name,
        confirmed_by=by.name if at_once else "",
        read_at=now,
        expires_at=now + LIFETIME,
    )
    with transaction.atomic():
        if made is not None:
            import_take(row, made)
        row.save()
        audit(
            actor=by, action="suite_import.start", obj=row, bytes=sum(len(upload.data) for upload in uploads),
            file=row.filename,
        )  # fmt: skip
        if made is None:
            import_send(row)
    return row


def suite_import_change(*, row: SuiteImport, choices: Choices, name: str = "", by: Actor) -> SuiteImport:
    """Read the same files again, otherwise. Raises Conflict once they are imported or gone."""
    choices.checked()
    import_open(row)
    uploads = uploads_of(row)
    name = name.strip() or row.suite_name
    if not suite_slug(name) or len(name) > 100:
        raise Refused("Give the suite a name with letters or digits, at most 100.", code="name_missing")
    made = prepare_now(row.project, name, uploads, choices) if _is_small(uploads, choices) else None
    with transaction.atomic():
        units_cancel(owner=row.topic)
        locked = SuiteImport.objects.select_for_update().get(pk=row.pk)
        import_open(locked)
        locked.suite_name, locked.options = name, as_json(choices)
        locked.keep_personal_data = choices.keep_personal_data
        locked.reading += 1
        locked.state, locked.error, locked.read_at = SuiteImport.State.READING, "", timezone.now()
        locked.at_once, locked.confirmed_by = False, ""  # somebody looks at it now
        locked.prepared = locked.report = None
        locked.digest = ""
        if made is not None:
            import_take(locked, made)
        locked.save()
        audit(actor=by, action="suite_import.change", obj=locked)
        if made is None:
            import_send(locked)
    return locked


def suite_import_confirm(*, row: SuiteImport, digest: str, by: Actor) -> SuiteVersion | None:
    """Import exactly what was shown under ``digest``. Confirming twice gives the same version; None while a
    worker stores it, because there is much of it.

    Raises Conflict where the preview has changed, has expired, or the suite has a newer version than the
    one it was compared with; then the comparison is made anew.
    """
    moved = False
    with transaction.atomic():
        rows = SuiteImport.objects.select_for_update(of=("self",)).defer("upload", "prepared")
        locked = rows.select_related("project", "against", "version").get(pk=row.pk)
        if locked.state == SuiteImport.State.DONE and locked.version is not None and locked.digest == digest:
            return locked.version
        if locked.state == SuiteImport.State.IMPORTING and locked.digest == digest:
            return None
        import_open(locked)
        if locked.state == SuiteImport.State.FAILED:
            raise Conflict("The files could not be imported. Read them again first.", code="import_failed")
        if locked.state != SuiteImport.State.READY:
            raise Conflict("The files are still being read.", code="import_not_ready")
        if locked.digest != digest:
            raise Conflict("The preview has changed since; look at it again.", code="preview_changed")
        if locked.total > _AT_ONCE_CASES:
            _confirm_later(locked, by)
            return None
        moved = import_is_outdated(locked)
        if moved:
            import_compare_again(locked)
        else:
            version = import_store(locked, cases_stage(list(import_tasks(locked))), by)
    if moved:
        raise Conflict(MOVED, code="suite_moved")
    return version


def suite_import_stop(*, row: SuiteImport, by: Actor) -> None:
    """Import nothing after all, and go back to the preview. Raises Conflict where nothing is under way."""
    with transaction.atomic():
        units_cancel(owner=row.topic)
        locked = SuiteImport.objects.select_for_update().defer("upload", "prepared").get(pk=row.pk)
        if locked.state == SuiteImport.State.DONE:
            raise Conflict("These files are imported already.", code="import_done")
        if locked.state != SuiteImport.State.IMPORTING:
            raise Conflict("Nothing is being imported.", code="nothing_to_stop")
        locked.state, locked.at_once, locked.confirmed_by = SuiteImport.State.READY, False, ""
        locked.reading += 1
        locked.done = locked.total
        locked.save(update_fields=["state", "at_once", "confirmed_by", "reading", "done"])
        audit(actor=by, action="suite_import.stop", obj=locked)
        publish(project=locked.project, topic=locked.topic, kind="SuiteImportStopped")


def suite_import_discard(*, row: SuiteImport, by: Actor) -> None:
    """Drop files that were not imported, whatever is being done with them."""
    with transaction.atomic():
        units_cancel(owner=row.topic)
        locked = SuiteImport.objects.select_for_update().get(pk=row.pk)
        if locked.state == SuiteImport.State.DONE:
            raise Conflict("These files are imported already.", code="import_done")
        audit(actor=by, action="suite_import.discard", obj=locked, file=locked.filename)
        locked.delete()


def suite_imports_sweep() -> None:
    """Drop what has expired; say of work that nobody does any more that it failed."""
    now = timezone.now()
    kept = (SuiteImport.State.DONE, SuiteImport.State.IMPORTING)
    SuiteImport.objects.filter(expires_at__lt=now).exclude(state__in=kept).delete()
    stuck = SuiteImport.objects.filter(state__in=list(_STUCK_WORDS), read_at__lt=now - STUCK)
    for pk, state in stuck.values_list("pk", "state"):
        row = SuiteImport.objects.only("pk").get(pk=pk)
        if not WorkUnit.objects.filter(owner=row.topic).open().exists():
            error = _STUCK_WORDS[SuiteImport.State(state)]
            stuck.filter(pk=pk, state=state).update(state=SuiteImport.State.FAILED, error=error)


def prepare_now(project: Project, name: str, uploads: Sequence[Upload], choices: Choices) -> Prepared:
    return prepare(project=project, suite_name=name, uploads=uploads, choices=choices)


def _confirm_later(row: SuiteImport, by: Actor) -> None:
    """A new number for the work, so that it is planned once for each confirmation."""
    row.state, row.confirmed_by, row.error = SuiteImport.State.IMPORTING, by.name, ""
    row.reading += 1
    row.done, row.read_at = 0, timezone.now()
    row.save(update_fields=["state", "confirmed_by", "error", "reading", "done", "read_at"])
    audit(actor=by, action="suite_import.confirm", obj=row, cases=row.total)
    import_send(row)
    publish(project=row.project, topic=row.topic, kind="SuiteImportConfirmed")


def _all_masked(project: Project, lines: Sequence[Line], filename: str) -> tuple[list[TaskSpec], int, int]:
    tasks, replaced, changed = [], 0, 0
    for case in masked_lines(project, lines):
        if isinstance(case, CannotMask):
            if filename:
                refuse(filename, case.number, str(case))
            reason = f"Case {case.number}, {str(case).rstrip('.')}."
            raise Refused(reason, code="case_invalid", case=case.number)
        tasks.append(case.task)
        replaced += case.replaced
        changed += case.replaced > 0
    return tasks, replaced, changed


def _is_small(uploads: Sequence[Upload], choices: Choices) -> bool:
    size = sum(len(upload.data) for upload in uploads)
    return size <= (_AT_ONCE_PLAIN if choices.keep_personal_data else _AT_ONCE_BYTES)
