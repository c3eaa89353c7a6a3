"""Suites as files: one case a line, as they were stored."""

import json
from collections.abc import Iterator

from apps.evals.models import Case, SuiteVersion
from apps.evals.services.lines import written_stream
from artifacts import get_store


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


def _artifact_lines(digest: str, hidden: set[str]) -> Iterator[bytes]:
    """What is run is what is exported: the artifact, not the database, which may write numbers otherwise."""
    with get_store().open(digest) as stream:
        rows = (json.loads(line) for line in stream)
        yield from written_stream(row for row in rows if row["id"] not in hidden)
