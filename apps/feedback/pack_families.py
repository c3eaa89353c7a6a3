"""Families of installed packs in a project: adding them with tasks and gauntlet, and checking packs.

A family that runs code says so while no sandbox can be had here.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Min

from apps.core.dispatch import dispatch
from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.models import Alert, Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.services import alert_raise, alert_resolve, audit
from apps.core.units import unit_create
from apps.feedback.assets import assets_import, solutions_of
from apps.feedback.families import family_ensure
from apps.feedback.gauntlet_runs import verifier_check
from apps.feedback.models import Family, TaskAsset
from artifacts import get_store
from domain.contracts import PackCheckResult, RunPackCheck, TaskSpec
from domain.isolation import needs_sandbox
from packs.records import record_check
from packs.registry import Pack, PackFamily, Solution, UnknownPack, pack_named, pack_of_family

FAMILY_TASKS = 40
SEED = 2026
CHECKS = "feedback.packs"  # owner of the units that check packs
_SANDBOX = "sandbox"  # key of the alert that says why there is none


def pack_family_add(*, project: Project, name: str, pack_name: str = "", by: Actor) -> Family:
    """The family ``name`` of an installed pack with its verifier and tasks; its gauntlet starts. Adding
    it again returns what is there. Raises ``Refused`` where no pack brings it, or not ``pack_name``."""
    if pack_name:
        _brings(pack_name, name)
    known = Family.objects.filter(project=project, name=name).first()
    if known is not None:
        return known
    try:
        pack = pack_of_family(name)
    except UnknownPack:
        raise Refused(f"No installed pack brings the family “{name[:100]}”.", code="pack_missing") from None
    entry = next(family for family in pack.families if family.name == name)
    # Both may take seconds, so before the transaction: nobody else could write meanwhile.
    tasks = pack.generate(name, seed=SEED, count=FAMILY_TASKS, reserved=False)
    solutions = solutions_of(pack.name, tasks)
    with transaction.atomic():  # a family is there with its tasks, or not at all
        family = _family(project, pack, entry, tasks, solutions, by)
        publish(project=project, topic=CHECKS, kind="PackFamilyAdded", family=family.pk)
    assert family.verifier is not None
    verifier_check(verifier=family.verifier, by=by)
    return family


def _brings(pack_name: str, family: str) -> None:
    try:
        pack = pack_named(pack_name)
    except UnknownPack:
        raise Refused(f"The pack “{pack_name[:60]}” is not installed.", code="pack_missing") from None
    if family not in {entry.name for entry in pack.families}:
        raise Refused(f"The pack “{pack_name}” brings no family “{family[:100]}”.", code="pack_missing")


def pack_add(*, project: Project, pack: str, by: Actor) -> list[str]:
    """Add all families of a pack that the project does not have, one after another in the background;
    returns their names."""
    try:
        found = pack_named(pack)
    except UnknownPack:
        raise Refused(f"The pack “{pack[:60]}” is not installed.", code="pack_missing") from None
    names = [entry.name for entry in found.families]
    known = set(Family.objects.filter(project=project, name__in=names).values_list("name", flat=True))
    missing = [name for name in names if name not in known]
    with transaction.atomic():
        for name in missing:
            dispatch("feedback.pack_family_add", project.pk, name, by.name)
        if missing:
            audit(actor=by, action="pack.add", obj=project, pack=pack, families=len(missing))
    return missing


def packs_check(
    *, project: Project, families: Iterable[str] = (), sample: int = 5, seed: int = 0, by: Actor
) -> WorkUnit:
    """Check families of the installed packs for real (all where none is named)."""
    names = tuple(dict.fromkeys(families))
    if not 1 <= sample <= 1000:
        raise Refused("Check between 1 and 1,000 tasks of each family.", code="sample_invalid")
    for name in names:
        try:
            pack_of_family(name)
        except UnknownPack:
            raise Refused(
                f"No installed pack brings the family “{name[:100]}”.", code="pack_missing"
            ) from None
    with transaction.atomic():
        unit = unit_create(
            project=project,
            kind="pack_check",
            key=f"packs:{project.pk}:{uuid.uuid4().hex}",
            owner=CHECKS,
            queue="eval",
            priority=1,
            max_attempts=2,
            message=RunPackCheck(families=names, sample=sample, seed=seed),
        )
        audit(actor=by, action="packs.check", obj=project, families=len(names), sample=sample)
        publish(project=project, topic=CHECKS, kind="PackCheckStarted", unit=unit.pk)
    return unit


def packs_check_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Keep the records; the worker may have another store, or none that is shared."""
    store = get_store()
    checks = PackCheckResult.model_validate(result).families
    for check in checks:
        record_check(store, check)
    say = f"{len(checks)} families of packs checked"
    publish(project=unit.project, topic=CHECKS, kind="PackCheckFinished", say=say, families=len(checks))


def packs_check_failed(unit: WorkUnit, error: str) -> None:
    publish(project=unit.project, topic=CHECKS, kind="PackCheckFailed", error=error[:300])


def sandbox_state_apply(*, project: Project, problem: str) -> str:
    """Families whose answers must be run say so while no sandbox can be had (``problem``); returns a
    sentence that names them, "" where all is well."""
    needing = _needing(project)
    Family.objects.filter(project=project).exclude(unavailable="").exclude(pk__in=needing).update(
        unavailable=""
    )
    Family.objects.filter(pk__in=needing).update(unavailable=problem)
    if not problem:
        alert_resolve(project=project, key=_SANDBOX)
        return ""
    names = ", ".join(Family.objects.filter(pk__in=needing).values_list("title", flat=True)[:5])
    more = f" and {len(needing) - 5} more" if len(needing) > 5 else ""
    title = f"No sandbox: {names}{more} cannot be verified"
    alert_raise(project=project, key=_SANDBOX, level="fail", title=title, detail=problem)
    return title


def _family(
    project: Project,
    pack: Pack,
    entry: PackFamily,
    tasks: list[TaskSpec],
    solutions: Mapping[str, Solution | None],
    by: Actor,
) -> Family:
    family = family_ensure(
        project=project,
        name=entry.name,
        title=entry.title,
        description=entry.description,
        pack=pack.name,
        verifier_kind=tasks[0].verifier.kind,
        verifier_params=_shared([task.verifier.params for task in tasks]),
        by=by,
    )
    assets_import(project=project, family=family, tasks=tasks, solutions=solutions, by=by)
    problem = Alert.objects.filter(project=project, key=_SANDBOX, resolved_at=None).first()
    if problem is not None and needs_sandbox(tasks[0]):
        family.unavailable = problem.detail
        family.save(update_fields=["unavailable"])
    return family


def _shared(params: list[dict[str, Any]]) -> dict[str, Any]:
    """What all tasks agree on; the rest each task says itself."""
    first, *others = params
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _needing(project: Project) -> list[int]:
    """Families of which a task, the first, needs a sandbox."""
    firsts = (
        TaskAsset.objects.filter(project=project, retired_at=None)
        .order_by()
        .values("family_id")
        .annotate(first=Min("pk"))
        .values_list("first", flat=True)
    )
    tasks = TaskAsset.objects.filter(pk__in=list(firsts)).values_list("family_id", "task")
    return [family for family, task in tasks if needs_sandbox(TaskSpec.model_validate(task))]
