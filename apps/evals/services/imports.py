"""Import and export of suites: at once, or shown first and then imported exactly as shown.

What is shown is kept encrypted until it is imported or dropped. A preview expires after a day. Large
files are read by a worker; the page follows its progress.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from apps.core.crypto import decrypt_bytes, decrypt_json, encrypt_bytes, encrypt_json
from apps.core.dispatch import dispatch
from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.evals.formats import Upload
from apps.evals.models import Case, Suite, SuiteImport, SuiteVersion
from apps.evals.services.lines import Line, parse_lines, refuse, written_stream
from apps.evals.services.masking import CannotMask, masked_lines
from apps.evals.services.reading import (
    Choices,
    Prepared,
    as_json,
    changes_of,
    first_look,
    from_json,
    newest_version,
    prepare,
)
from apps.evals.services.suites import suite_create, suite_slug, suite_version_create, task_digest
from artifacts import get_store
from domain.contracts import TaskSpec

LIFETIME = timedelta(hours=24)
STUCK = timedelta(minutes=30)  # without progress
_AT_ONCE_BYTES = 16 * 1024  # of what must be masked: some seconds of a request
_AT_ONCE_PLAIN = 4 * 1024 * 1024
_SHOWN_ROWS, _SHOWN_LEFT_OUT = 10, 500
_QUEUE = "anonymize"


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
    note = _note(filename, len(tasks), replaced, changed, 0)
    version = _stored(project, name, tasks, note, by, kept=keep_personal_data, replaced=replaced)
    return Imported(version, replaced, changed)


def suite_import_files(
    *, project: Project, name: str, uploads: Sequence[Upload], choices: Choices, by: Actor
) -> Imported:
    """Import files of any format at once. Raises Refused where something would be left out: that is for
    a person to see first."""
    made = prepare(project=project, suite_name=name, uploads=uploads, choices=choices)
    if made.left_out:
        first = "; ".join(f"{each.where}, {each.name}: {each.reason}" for each in made.left_out[:5])
        raise Refused(
            f"{len(made.left_out):,} parts of {uploads[0].name} would be left out: {first}. Nothing was "
            "imported. Look at them in a preview, and confirm that.",
            code="import_leaves_out",
            left_out=[list(each) for each in made.left_out[:_SHOWN_LEFT_OUT]],
        )
    note = _note(_named(uploads), len(made.tasks), made.replaced, made.masked, 0)
    kept = choices.keep_personal_data
    version = _stored(project, name, made.tasks, note, by, kept=kept, replaced=made.replaced)
    return Imported(version, made.replaced, made.masked)


def suite_import_start(
    *, project: Project, name: str, uploads: Sequence[Upload], choices: Choices, by: Actor
) -> SuiteImport:
    """Read files for a preview: at once where they are small, else by a worker. Raises Refused."""
    if not suite_slug(name.strip()):
        raise Refused("Give the suite a name with letters or digits.", code="name_missing")
    if len(name.strip()) > 100:
        raise Refused("The suite's name is longer than 100 characters.", code="name_too_long")
    choices.checked()
    size = sum(len(upload.data) for upload in uploads)
    made = prepare_now(project, name, uploads, choices) if _is_small(size, choices) else None
    if made is None:
        first_look(uploads)
    now = timezone.now()
    row = SuiteImport(
        project=project,
        suite_name=name.strip(),
        filename=_named(uploads)[:300],
        options=as_json(choices),
        keep_personal_data=choices.keep_personal_data,
        upload=encrypt_bytes(_packed(uploads)),
        created_by=by.name,
        read_at=now,
        expires_at=now + LIFETIME,
    )
    with transaction.atomic():
        if made is not None:
            _take(row, made)
        row.save()
        audit(actor=by, action="suite_import.start", obj=row, bytes=size, file=row.filename)
        if made is None:
            dispatch("evals.suite_import_read", row.pk, row.reading, queue=_QUEUE)
    return row


def suite_import_change(*, row: SuiteImport, choices: Choices, name: str = "", by: Actor) -> SuiteImport:
    """Read the same files again, otherwise. Raises Conflict once they are imported or gone."""
    choices.checked()
    _open(row)
    uploads = _unpacked(row)
    name = name.strip() or row.suite_name
    if not suite_slug(name) or len(name) > 100:
        raise Refused("Give the suite a name with letters or digits, at most 100.", code="name_missing")
    size = sum(len(upload.data) for upload in uploads)
    made = prepare_now(row.project, name, uploads, choices) if _is_small(size, choices) else None
    with transaction.atomic():
        locked = SuiteImport.objects.select_for_update().get(pk=row.pk)
        _open(locked)
        locked.suite_name, locked.options = name, as_json(choices)
        locked.keep_personal_data = choices.keep_personal_data
        locked.reading += 1
        locked.state, locked.error, locked.read_at = SuiteImport.State.READING, "", timezone.now()
        locked.prepared = locked.report = None
        locked.digest = ""
        if made is not None:
            _take(locked, made)
        locked.save()
        audit(actor=by, action="suite_import.change", obj=locked)
        if made is None:
            dispatch("evals.suite_import_read", locked.pk, locked.reading, queue=_QUEUE)
    return locked


def suite_import_read(*, import_id: int, reading: int) -> None:
    """What a worker does for a large file. Running twice, or late, changes nothing."""
    rows = SuiteImport.objects.filter(pk=import_id, reading=reading, state=SuiteImport.State.READING)
    row = rows.select_related("project").first()
    if row is None:
        return
    choices = from_json(row.options, keep_personal_data=row.keep_personal_data)
    try:
        made = prepare(
            project=row.project,
            suite_name=row.suite_name,
            uploads=_unpacked(row),
            choices=choices,
            progress=lambda at, of: _progress(row, at, of),
        )
    except Refused as refused:
        rows.update(state=SuiteImport.State.FAILED, error=refused.message)
        publish(project=row.project, topic=row.topic, kind="SuiteImportFailed", say="The file cannot be read")
        return
    with transaction.atomic():
        locked = rows.select_for_update().first()
        if locked is None:
            return
        _take(locked, made)
        locked.save()
        publish(project=row.project, topic=row.topic, kind="SuiteImportRead", say="The file is read")


def suite_import_confirm(*, row: SuiteImport, digest: str, by: Actor) -> SuiteVersion:
    """Import exactly what was shown under ``digest``. Confirming twice gives the same version.

    Raises Conflict where the preview has changed, has expired, or the suite has a newer version than the
    one it was compared with; then the comparison is made anew.
    """
    moved = False
    with transaction.atomic():
        rows = SuiteImport.objects.select_for_update(of=("self",)).defer("upload")
        locked = rows.select_related("project", "against", "version").get(pk=row.pk)
        if locked.state == SuiteImport.State.DONE and locked.version is not None and locked.digest == digest:
            return locked.version
        _open(locked)
        if locked.state != SuiteImport.State.READY:
            raise Conflict("The files are still being read.", code="import_not_ready")
        if locked.digest != digest:
            raise Conflict("The preview has changed since; look at it again.", code="preview_changed")
        newest = newest_version(locked.project, locked.suite_name)
        if (newest.pk if newest else None) != locked.against_id:
            moved = True
            _compare_again(locked, newest)
        else:
            version = _confirmed(locked, by)
    if moved:
        raise Conflict(
            "The suite has a newer version than the one in the preview. It is compared with that one now.",
            code="suite_moved",
        )
    return version


def suite_import_discard(*, row: SuiteImport, by: Actor) -> None:
    """Drop files that were not imported."""
    with transaction.atomic():
        locked = SuiteImport.objects.select_for_update().get(pk=row.pk)
        if locked.state == SuiteImport.State.DONE:
            raise Conflict("These files are imported already.", code="import_done")
        audit(actor=by, action="suite_import.discard", obj=locked, file=locked.filename)
        locked.delete()


def suite_imports_sweep() -> None:
    """Drop what has expired; say of readings that never ended that they failed."""
    now = timezone.now()
    SuiteImport.objects.filter(expires_at__lt=now).exclude(state=SuiteImport.State.DONE).delete()
    stuck = SuiteImport.objects.filter(state=SuiteImport.State.READING, read_at__lt=now - STUCK)
    stuck.update(
        state=SuiteImport.State.FAILED, error="Reading did not come to an end. Read it again, or drop it."
    )


def report_of(row: SuiteImport) -> dict[str, Any]:
    """What the preview shows; empty while the files are being read and once they are gone."""
    return decrypt_json(bytes(row.report)) if row.report else {}


def suite_export_jsonl(*, suite_version: SuiteVersion) -> bytes:
    """The version's cases, one a line, as they were stored; importing the file gives the same version."""
    return b"".join(suite_export_stream(suite_version=suite_version))


def suite_export_stream(*, suite_version: SuiteVersion, held_out: bool = True) -> Iterator[bytes]:
    """The same line by line; without ``held_out`` the held-out cases stay here."""
    hidden: set[str] = set()
    if not held_out:
        rows = suite_version.cases.filter(split=Case.Split.HELD_OUT)
        hidden = set(rows.values_list("key", flat=True))
    return _artifact_lines(suite_version.tasks_digest, hidden)


def tasks_masked(*, project: Project, tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """``tasks`` without personal data, for cases that come in by other ways than a file."""
    lines = [Line(at, task) for at, task in enumerate(tasks, start=1)]
    return _all_masked(project, lines, "")[0]


def prepare_now(project: Project, name: str, uploads: Sequence[Upload], choices: Choices) -> Prepared:
    return prepare(project=project, suite_name=name, uploads=uploads, choices=choices)


def _artifact_lines(digest: str, hidden: set[str]) -> Iterator[bytes]:
    """What is run is what is exported: the artifact, not the database, which may write numbers otherwise."""
    with get_store().open(digest) as stream:
        rows = (json.loads(line) for line in stream)
        yield from written_stream(row for row in rows if row["id"] not in hidden)


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


def _stored(
    project: Project, name: str, tasks: Sequence[TaskSpec], note: str, by: Actor, *, kept: bool, replaced: int
) -> SuiteVersion:
    with transaction.atomic():
        suite = Suite.objects.filter(project=project, slug=suite_slug(name)).first()
        if suite is None:
            suite = suite_create(project=project, name=name, by=by)
        version = suite_version_create(suite=suite, tasks=tasks, note=note, by=by)
        audit(
            actor=by, action="suite.import", obj=suite, cases=len(tasks), kept_personal_data=kept,
            replaced=replaced,
        )  # fmt: skip
    return version


def _confirmed(row: SuiteImport, by: Actor) -> SuiteVersion:
    report = report_of(row)
    assert row.prepared is not None
    data = gzip.decompress(decrypt_bytes(bytes(row.prepared)))
    if hashlib.sha256(data).hexdigest() != row.digest:
        raise Conflict("What was previewed is damaged. Read the files again.", code="preview_damaged")
    tasks = [TaskSpec.model_validate_json(line) for line in data.split(b"\n") if line]
    note = _note(row.filename, len(tasks), report["replaced"], report["masked"], report["left_out_count"])
    version = _stored(
        row.project, row.suite_name, tasks, note, by, kept=row.keep_personal_data, replaced=report["replaced"]
    )
    row.version, row.state = version, SuiteImport.State.DONE
    row.upload = row.prepared = row.report = None
    row.save()
    return version


def _compare_again(row: SuiteImport, newest: SuiteVersion | None) -> None:
    report = report_of(row)
    assert row.prepared is not None
    data = gzip.decompress(decrypt_bytes(bytes(row.prepared)))
    tasks = (TaskSpec.model_validate_json(line) for line in data.split(b"\n") if line)
    changes = changes_of(newest, {task.id: task_digest(task) for task in tasks})
    report["changes"] = changes._asdict()
    report["against"] = newest.number if newest else None
    row.against, row.report = newest, encrypt_json(report)
    row.save(update_fields=["against", "report"])


def _take(row: SuiteImport, made: Prepared) -> None:
    """What was read, into the row. The caller saves it."""
    data = made.data
    own = made.tasks[: len(made.tasks) - made.kept_held_out]  # what is kept from before may not be for all
    row.state, row.error = SuiteImport.State.READY, ""
    row.prepared = encrypt_bytes(gzip.compress(data, compresslevel=1))
    row.digest = hashlib.sha256(data).hexdigest()
    row.against = made.against
    row.done = row.total = len(made.tasks)
    row.report = encrypt_json(
        {
            "format": made.format,
            "title": made.title,
            "count": len(made.tasks),
            "rows": [task.model_dump(mode="json", exclude_defaults=True) for task in own[:_SHOWN_ROWS]],
            "left_out": [list(each) for each in made.left_out[:_SHOWN_LEFT_OUT]],
            "left_out_count": len(made.left_out),
            "notes": made.notes,
            "columns": [list(column) for column in made.columns],
            "replaced": made.replaced,
            "masked": made.masked,
            "kept_held_out": made.kept_held_out,
            "against": made.against.number if made.against else None,
            "changes": made.changes._asdict(),
            "splits": made.splits,
        }
    )


def _open(row: SuiteImport) -> None:
    if row.state == SuiteImport.State.DONE:
        raise Conflict("These files are imported already.", code="import_done")
    if row.expires_at < timezone.now():
        raise Conflict("This preview has expired. Send the files again.", code="preview_expired")


def _progress(row: SuiteImport, at: int, of: int) -> None:
    now = SuiteImport.objects.filter(pk=row.pk, reading=row.reading)
    now.update(done=at, total=of, read_at=timezone.now())
    publish(project=row.project, topic=row.topic, kind="SuiteImportProgress", done=at, total=of)


def _is_small(size: int, choices: Choices) -> bool:
    return size <= (_AT_ONCE_PLAIN if choices.keep_personal_data else _AT_ONCE_BYTES)


def _named(uploads: Sequence[Upload]) -> str:
    return " + ".join(upload.name.rpartition("/")[2][:100] for upload in uploads)


def _packed(uploads: Sequence[Upload]) -> bytes:
    """Names and sizes as a first line, then the bytes; one copy, lightly pressed."""
    head = json.dumps([[upload.name[:200], len(upload.data)] for upload in uploads]).encode() + b"\n"
    return gzip.compress(b"".join([head, *(upload.data for upload in uploads)]), compresslevel=1)


def _unpacked(row: SuiteImport) -> list[Upload]:
    assert row.upload is not None
    data = gzip.decompress(decrypt_bytes(bytes(row.upload)))
    head, _, rest = data.partition(b"\n")
    uploads, start = [], 0
    for name, size in json.loads(head):
        uploads.append(Upload(name, rest[start : start + size]))
        start += size
    return uploads


def _note(filename: str, cases: int, replaced: int, changed: int, left_out: int) -> str:
    note = f"Imported from {filename}"[:110]
    if replaced:
        note += f"; personal details replaced: {replaced} in {changed} of {cases} cases"
    if left_out:
        note += f"; left out: {left_out}"
    return note
