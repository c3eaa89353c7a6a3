"""The row of an import: what was sent and read, encrypted and pressed, and what is said of it."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils import timezone

from apps.core.crypto import decrypt_bytes, decrypt_json, encrypt_bytes, encrypt_json
from apps.core.errors import Conflict
from apps.evals.formats import Upload
from apps.evals.models import SuiteImport
from apps.evals.services.reading import Prepared
from domain.contracts import TaskSpec

SHOWN_LEFT_OUT = 500
_SHOWN_ROWS = 10


def report_of(row: SuiteImport) -> dict[str, Any]:
    """What the preview shows; empty while the files are being read and once they are gone."""
    return decrypt_json(bytes(row.report)) if row.report else {}


def import_open(row: SuiteImport) -> None:
    """Raises Conflict for files that are imported, on their way, or too old."""
    if row.state == SuiteImport.State.DONE:
        raise Conflict("These files are imported already.", code="import_done")
    if row.state == SuiteImport.State.IMPORTING:
        raise Conflict("These files are being imported. Stop that first.", code="import_running")
    if row.expires_at < timezone.now():
        raise Conflict("This preview has expired. Send the files again.", code="preview_expired")


def import_take(row: SuiteImport, made: Prepared) -> None:
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
            "left_out": [list(each) for each in made.left_out[:SHOWN_LEFT_OUT]],
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


def import_tasks(row: SuiteImport) -> Iterator[TaskSpec]:
    """The cases exactly as they were shown. Raises Conflict where that cannot be told any more."""
    assert row.prepared is not None
    data = gzip.decompress(decrypt_bytes(bytes(row.prepared)))
    if hashlib.sha256(data).hexdigest() != row.digest:
        raise Conflict("What was previewed is damaged. Read the files again.", code="preview_damaged")
    return (TaskSpec.model_validate_json(line) for line in data.split(b"\n") if line)


def uploads_named(uploads: Sequence[Upload]) -> str:
    return " + ".join(upload.name.rpartition("/")[2][:100] for upload in uploads)


def uploads_packed(uploads: Sequence[Upload]) -> bytes:
    """Names and sizes as a first line, then the bytes; one copy, lightly pressed, encrypted."""
    head = json.dumps([[upload.name[:200], len(upload.data)] for upload in uploads]).encode() + b"\n"
    whole = b"".join([head, *(upload.data for upload in uploads)])
    return encrypt_bytes(gzip.compress(whole, compresslevel=1))


def uploads_of(row: SuiteImport) -> list[Upload]:
    assert row.upload is not None
    data = gzip.decompress(decrypt_bytes(bytes(row.upload)))
    head, _, rest = data.partition(b"\n")
    uploads, start = [], 0
    for name, size in json.loads(head):
        uploads.append(Upload(name, rest[start : start + size]))
        start += size
    return uploads


def note_of(filename: str, cases: int, replaced: int, changed: int, left_out: int) -> str:
    """What a version says of its import."""
    note = f"Imported from {filename}"[:110]
    if replaced:
        note += f"; personal details replaced: {replaced} in {changed} of {cases} cases"
    if left_out:
        note += f"; left out: {left_out}"
    return note


def left_out_words(filename: str, count: int, parts: Sequence[Sequence[str]]) -> str:
    """Why what was asked for at once is not imported."""
    first = "; ".join(f"{where}, {name}: {reason}" for where, name, reason in parts[:5])
    return (
        f"{count:,} {'part' if count == 1 else 'parts'} of {filename} would be left out: {first}. "
        "Nothing was imported. Look at them in a preview, and confirm that."
    )
