"""Suites and their immutable versions. Cases that did not change share a row between versions."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.evals.formats.splits import TAG, split_named
from apps.evals.models import Case, Suite, SuiteVersion, SuiteVersionCase
from artifacts import get_store
from domain.contracts import TaskSpec
from domain.verifiers import InvalidVerifier, UnknownVerifier, check_spec

MAX_CASES = 100_000
_EVERY = 500


def suite_create(*, project: Project, name: str, description: str = "", by: Actor) -> Suite:
    """An empty suite; it can be run once it has a version."""
    name = name.strip()
    slug = suite_slug(name)
    if not slug:
        raise Refused("Give the suite a name with letters or digits.", code="name_missing")
    if len(name) > 100:
        raise Refused("The suite's name is longer than 100 characters.", code="name_too_long")
    try:
        with transaction.atomic():
            suite = Suite.objects.create(
                project=project, name=name, slug=slug, description=description, created_by=by.name
            )
    except IntegrityError:
        raise Conflict(f"There is already a suite called “{name}”.", code="suite_exists") from None
    audit(actor=by, action="suite.create", obj=suite)
    return suite


def suite_slug(name: str) -> str:
    """What a suite's name is unique by: “Invoices” and “invoices ” are one."""
    return slugify(name, allow_unicode=True)[:100]


class Staged(NamedTuple):
    """Cases that are checked and written as an artifact. What is left is a matter of rows."""

    tasks: Sequence[TaskSpec]
    bodies: list[dict[str, Any]]
    digests: list[str]
    digest: str
    tasks_digest: str


def cases_stage(tasks: Sequence[TaskSpec], progress: Callable[[int], None] | None = None) -> Staged:
    """The part of ``suite_version_create`` that no database has to wait for. Raises Refused."""
    _check(tasks)
    bodies, digests = [], []
    for at, task in enumerate(tasks):
        if progress is not None and at % _EVERY == 0:
            progress(at)
        bodies.append(task.model_dump(mode="json", exclude_defaults=True))
        digests.append(body_digest(bodies[-1]))
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()
    return Staged(tasks, bodies, digests, digest, get_store().put_jsonl(bodies))


def suite_version_create(
    *, suite: Suite, tasks: Sequence[TaskSpec], note: str = "", by: Actor
) -> SuiteVersion:
    """The next version of ``suite``: exactly ``tasks``, in order. Unchanged content keeps its version.

    Raises Refused when a verifier is unknown or unsound, or two cases share an id.
    """
    return suite_version_store(suite=suite, staged=cases_stage(tasks), note=note, by=by)


def suite_version_store(*, suite: Suite, staged: Staged, note: str = "", by: Actor) -> SuiteVersion:
    """The rows of what was staged, in one transaction."""
    tasks, bodies, digests, digest, tasks_digest = staged
    with transaction.atomic():
        locked = Suite.objects.select_for_update().get(pk=suite.pk)
        newest = locked.versions.first()
        if newest is not None and newest.digest == digest:
            return newest
        cases = _cases(locked, tasks, bodies, digests)
        version = SuiteVersion.objects.create(
            suite=locked,
            number=newest.number + 1 if newest else 1,
            digest=digest,
            tasks_digest=tasks_digest,
            count=len(tasks),
            note=note[:200],
            created_by=by.name,
        )
        SuiteVersionCase.objects.bulk_create(
            [SuiteVersionCase(version=version, case_id=pk, index=index) for index, pk in enumerate(cases)],
            batch_size=1000,
        )
        audit(actor=by, action="suite_version.create", obj=version, cases=len(tasks), digest=digest)
        publish(
            project=suite.project,
            topic=f"evals.suite:{suite.pk}",
            kind="SuiteVersionCreated",
            number=version.number,
        )
    return version


def _check(tasks: Sequence[TaskSpec]) -> None:
    if not tasks:
        raise Refused("A suite version needs at least one case.", code="suite_empty")
    if len(tasks) > MAX_CASES:
        raise Refused(f"A suite version holds at most {MAX_CASES:,} cases.", code="suite_too_large")
    seen: dict[str, int] = {}
    for index, task in enumerate(tasks, start=1):
        first = seen.setdefault(task.id, index)
        if first != index:
            message = f"Case {index} has the same id as case {first}: “{task.id}”."
            raise Refused(message, code="case_twice", case=index)
        if problem := verifier_problem(task):
            raise Refused(f"Case “{task.id}”: {problem[1]}", code=problem[0], case=index)


def verifier_problem(task: TaskSpec) -> tuple[str, str] | None:
    """(code, sentence) if the task's verifier cannot judge it, else None."""
    try:
        check_spec(task.verifier, task.reference)
    except UnknownVerifier as error:
        return "verifier_unknown", str(error)
    except InvalidVerifier as error:
        return "verifier_invalid", str(error)
    return None


def task_digest(task: TaskSpec) -> str:
    """SHA-256 over the canonical JSON of what differs from the defaults."""
    return body_digest(task.model_dump(mode="json", exclude_defaults=True))


def body_digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _cases(
    suite: Suite, tasks: Sequence[TaskSpec], bodies: Sequence[Mapping[str, Any]], digests: Sequence[str]
) -> list[int]:
    """Ids of rows for each task, creating those that are new, in few queries however many there are."""
    known = _revisions(suite)
    new = [
        Case(
            suite=suite,
            key=task.id,
            digest=digest,
            family=task.family,
            source=task.source[:200],
            tags=task.tags,
            split=split_named(task.tags.get(TAG)),
            task=body,
        )
        for task, body, digest in zip(tasks, bodies, digests, strict=True)
        if (task.id, digest) not in known
    ]
    if new:
        Case.objects.bulk_create(new, ignore_conflicts=True, batch_size=500)
        known = _revisions(suite)
    return [known[task.id, digest] for task, digest in zip(tasks, digests, strict=True)]


def _revisions(suite: Suite) -> dict[tuple[str, str], int]:
    rows = Case.objects.filter(suite=suite).values_list("key", "digest", "pk").order_by()
    return {(key, digest): pk for key, digest, pk in rows.iterator(chunk_size=5000)}
