"""Reading files in tests of formats: what came of them, and whether it can judge."""

from typing import Any

from apps.evals.formats import Imported, Options, Upload, read_files
from domain.contracts import TaskSpec, Verdict
from domain.verifiers import check_spec, verify


def read(*files: tuple[str, bytes | str], **options: Any) -> Imported:
    uploads = [Upload(name, data.encode() if isinstance(data, str) else data) for name, data in files]
    found = read_files(uploads, Options(**options))[1]
    for task in found.tasks:
        check_spec(task.verifier, task.reference)
    return found


def format_of(*files: tuple[str, bytes | str], **options: Any) -> str:
    uploads = [Upload(name, data.encode() if isinstance(data, str) else data) for name, data in files]
    return read_files(uploads, Options(**options))[0].name


def judged(task: TaskSpec, answer: str) -> str:
    verdict: Verdict = verify(task, answer, {})
    return verdict.state


def reasons(found: Imported) -> dict[str, str]:
    """Reasons by what was left out."""
    return {each.name: each.reason for each in found.left_out}
