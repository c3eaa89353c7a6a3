"""From files to the cases of an import: read, checked, masked, split. Nothing is stored here."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from apps.core.errors import Refused
from apps.core.models import Project
from apps.evals.formats import Column, LeftOut, Options, Unreadable, Upload, read_files
from apps.evals.formats.detect import format_name
from apps.evals.formats.splits import HELD_OUT, SPLITS, TAG, split_by_hash, split_named
from apps.evals.formats.values import all_unzipped
from apps.evals.models import Case, Suite, SuiteVersion
from apps.evals.services.lines import MAX_BYTES, Line, refuse, refused, written_lines
from apps.evals.services.masking import CannotMask, masked_lines
from apps.evals.services.suites import MAX_CASES, suite_slug, task_digest, verifier_problem
from artifacts import get_store
from domain.contracts import TaskSpec


@dataclass(frozen=True)
class Choices:
    """What a person decides about an import. Shares are of the sources, in [0, 1].

    ``keep_held_out``: held-out cases of the newest version that the file lacks stay in the next one.
    """

    options: Options = field(default_factory=Options)
    keep_personal_data: bool = False
    keep_held_out: bool = True
    validation: float = 0.0
    held_out: float = 0.0

    def checked(self) -> "Choices":
        shares = (self.validation, self.held_out)
        if not all(0.0 <= share <= 1.0 for share in shares) or sum(shares) > 1.0:
            raise Refused("The shares of validation and held out are from 0 to 1, together at most 1.")
        return self


class Changes(NamedTuple):
    """What an import changes against a version, by case id."""

    new: int
    changed: int
    unchanged: int
    removed: int
    removed_held_out: int


@dataclass(frozen=True)
class Prepared:
    """The cases exactly as they will be stored, and what is said about them."""

    format: str
    title: str
    tasks: list[TaskSpec]
    left_out: list[LeftOut]
    notes: list[str]
    columns: list[Column]
    replaced: int
    masked: int
    kept_held_out: int
    against: SuiteVersion | None
    changes: Changes
    splits: dict[str, int]

    @property
    def data(self) -> bytes:
        return written_lines(self.tasks)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def prepare(
    *, project: Project, suite_name: str, uploads: Sequence[Upload], choices: Choices,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:  # fmt: skip
    """Raises Refused where the files cannot be taken."""
    choices.checked()
    _sizes_checked(uploads)
    try:
        chosen, found = read_files(uploads, choices.options)
    except Unreadable as error:
        raise refused(error) from None
    filename = uploads[0].name
    lines, left_out = _judgeable(filename, found.whole, found.tasks, found.lines, list(found.left_out))
    tasks, replaced, masked = _masked(project, filename, found.whole, lines, left_out, choices, progress)
    tasks = [_with_split(task, choices) for task in tasks]
    newest = newest_version(project, suite_name)
    kept = _kept_held_out(newest, tasks) if newest is not None and choices.keep_held_out else []
    tasks += kept
    if not tasks:
        raise Refused(_nothing_left(filename, left_out), code="import_empty", left_out=len(left_out))
    if len(tasks) > MAX_CASES:
        refuse(filename, 0, f"more than {MAX_CASES:,} cases; a suite version holds no more")
    return Prepared(
        format=chosen.name,
        title=chosen.title,
        tasks=tasks,
        left_out=left_out,
        notes=found.notes,
        columns=found.columns,
        replaced=replaced,
        masked=masked,
        kept_held_out=len(kept),
        against=newest,
        changes=changes_of(newest, {task.id: task_digest(task) for task in tasks}),
        splits=_splits(tasks),
    )


def first_look(uploads: Sequence[Upload]) -> None:
    """What is wrong at first sight is said at once, not after a worker has had its turn. Raises Refused."""
    _sizes_checked(uploads)
    try:
        for upload in all_unzipped(uploads):
            format_name(upload)
    except Unreadable as error:
        raise refused(error) from None


def newest_version(project: Project, suite_name: str) -> SuiteVersion | None:
    suite = Suite.objects.filter(project=project, slug=suite_slug(suite_name)).first()
    return suite.versions.first() if suite is not None else None


def changes_of(version: SuiteVersion | None, digests: dict[str, str]) -> Changes:
    """``digests`` by case id, against the cases of ``version``."""
    if version is None:
        return Changes(len(digests), 0, 0, 0, 0)
    before = {
        key: (digest, split) for key, digest, split in version.cases.values_list("key", "digest", "split")
    }
    shared = digests.keys() & before.keys()
    same = sum(1 for key in shared if digests[key] == before[key][0])
    gone = before.keys() - digests.keys()
    hidden = sum(1 for key in gone if before[key][1] == HELD_OUT)
    return Changes(len(digests) - len(shared), len(shared) - same, same, len(gone), hidden)


def _sizes_checked(uploads: Sequence[Upload]) -> None:
    if not uploads:
        raise Refused("Choose a file.", code="file_missing")
    total = sum(len(upload.data) for upload in uploads)
    if total > MAX_BYTES:
        what = "the file is" if len(uploads) == 1 else "the files together are"
        refuse(uploads[0].name, 0, f"{what} larger than {MAX_BYTES // 2**20} MB")


def _judgeable(
    filename: str, whole: bool, tasks: Sequence[TaskSpec], numbers: Sequence[int], left_out: list[LeftOut]
) -> tuple[list[Line], list[LeftOut]]:
    """Cases that their verifier can judge. A file of ours is taken whole or not at all."""
    lines: list[Line] = []
    for number, task in zip(numbers, tasks, strict=True):
        problem = verifier_problem(task)
        if problem is None:
            lines.append(Line(number, task))
        elif whole:
            refuse(filename, number, problem[1], code=problem[0])
        else:
            words = "verifier unknown: " if problem[0] == "verifier_unknown" else ""
            left_out.append(LeftOut(_where(number), task.id, f"{words}{problem[1]}"))
    return lines, left_out


def _masked(
    project: Project, filename: str, whole: bool, lines: Sequence[Line], left_out: list[LeftOut],
    choices: Choices, progress: Callable[[int, int], None] | None,
) -> tuple[list[TaskSpec], int, int]:  # fmt: skip
    if choices.keep_personal_data:
        return [line.task for line in lines], 0, 0
    done = masked_lines(project, lines, (lambda at: progress(at, len(lines))) if progress else None)
    tasks, replaced, masked = [], 0, 0
    for case, line in zip(done, lines, strict=True):
        if isinstance(case, CannotMask):
            if whole:
                refuse(filename, case.number, str(case))
            left_out.append(LeftOut(_where(line.number), "case", str(case)))
            continue
        tasks.append(case.task)
        replaced += case.replaced
        masked += case.replaced > 0
    return tasks, replaced, masked


def _with_split(task: TaskSpec, choices: Choices) -> TaskSpec:
    """A case that says its split keeps it; the others are split by their source where that was asked."""
    if TAG in task.tags or not (choices.validation or choices.held_out):
        return task
    split = split_by_hash(task.source or task.id, validation=choices.validation, held_out=choices.held_out)
    return task.model_copy(update={"tags": {**task.tags, TAG: split}})


def _kept_held_out(newest: SuiteVersion, tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """From the version's artifact: a database may write numbers otherwise, and that would be a change."""
    keys = newest.cases.filter(split=Case.Split.HELD_OUT).values_list("key", flat=True)
    wanted = set(keys) - {task.id for task in tasks}
    if not wanted:
        return []
    rows = get_store().iter_jsonl(newest.tasks_digest)
    return [TaskSpec.model_validate(row) for row in rows if row["id"] in wanted]


def _splits(tasks: Sequence[TaskSpec]) -> dict[str, int]:
    named = [split_named(task.tags.get(TAG)) for task in tasks]
    return {split: named.count(split) for split in SPLITS if split in named}


def _nothing_left(filename: str, left_out: Sequence[LeftOut]) -> str:
    first = "; ".join(f"{each.where}, {each.name}: {each.reason}" for each in left_out[:3])
    more = f" and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
    return f"{filename}: no case is left. {first}{more}. Nothing was imported."


def _where(number: int) -> str:
    return f"line {number}" if number else "case"


def as_json(choices: Choices) -> dict[str, Any]:
    """``choices`` as a row keeps them."""
    return {
        "format": choices.options.format,
        "columns": dict(choices.options.columns),
        "verifier": choices.options.verifier,
        "family": choices.options.family,
        "prompt": choices.options.prompt,
        "keep_held_out": choices.keep_held_out,
        "validation": choices.validation,
        "held_out": choices.held_out,
    }


def from_json(value: dict[str, Any], *, keep_personal_data: bool) -> Choices:
    names = ("format", "columns", "verifier", "family", "prompt")
    return Choices(
        options=Options(**{name: value[name] for name in names if name in value}),
        keep_personal_data=keep_personal_data,
        keep_held_out=bool(value.get("keep_held_out", True)),
        validation=float(value.get("validation", 0.0)),
        held_out=float(value.get("held_out", 0.0)),
    )
