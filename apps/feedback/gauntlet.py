"""The gauntlet's entries: solutions whose right judgement a verifier has to show before it may train.

They come from the family's tasks (good, bad and empty answers), from the catalogue of cheats, from
confirmed exploits, and by hand. Running them is ``gauntlet_runs``.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from pydantic import ValidationError

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import GauntletEntry, TaskAsset, Verifier
from apps.feedback.verifiers import task_under, versions_of
from domain.contracts import TaskSpec
from domain.exploits import ROWS, Solution, cheats_for
from domain.verifiers import InvalidVerifier, check_spec
from packs.registry import UnknownPack, pack_named

TASKS_CHECKED = 4
TASKS_CHEATED = 2  # cheats are many; a few tasks show what they show
_NAME = 120
Origin = GauntletEntry.Origin


def entries_refresh(*, verifier: Verifier) -> int:
    """Bring the entries up to date with the family's tasks; returns how many are in force.

    Entries added by hand stay, retired ones stay retired. Good answers are corrections, or come from
    the pack; an impossible task has none.
    """
    cheated = 0
    for asset, made, task in _tasks_of(verifier):
        good, bad = known_answers(asset, made)
        data = task.model_dump(mode="json")
        if good:
            _put(verifier, Origin.GOOD, f"{asset.key}: good", data, good)
        if not good and not task.tags.get("canary"):
            continue
        _put(verifier, Origin.NOOP, f"{asset.key}: nothing", data, "", row=19, source=ROWS[19].source)
        for name, answer in bad.items():
            if _said(answer):
                _put(verifier, Origin.BAD, f"{asset.key}: {name}", data, answer)
        if good and cheated < TASKS_CHEATED:
            cheated += 1
            for cheat in cheats_for(task, good):
                name = f"{asset.key}: {cheat.name}"
                _put(
                    verifier,
                    Origin.EXPLOIT,
                    name,
                    data,
                    cheat.solution,
                    row=cheat.row,
                    source=cheat.source,
                )
    return verifier.entries.in_force().count()


def entry_add(
    *,
    verifier: Verifier,
    origin: str,
    name: str,
    task: Mapping[str, Any],
    answer: str = "",
    turns: list[str] | tuple[str, ...] = (),
    row: int | None = None,
    source: str = "",
    by: Actor,
) -> GauntletEntry:
    """Add a solution for good: a confirmed exploit from a trajectory, or one written by hand.

    The verifier must run the gauntlet again before it may train. Adding the same name again replaces
    the entry, and brings it back where it was retired.
    """
    spec = _task(task)
    if spec.verifier.kind != verifier.kind and not _has_tasks_of(verifier, spec.verifier.kind):
        raise Refused(
            f"The task is judged by “{spec.verifier.kind}”, this verifier is “{verifier.kind}”.",
            code="verifier_mismatch",
        )
    if row is not None and row not in ROWS:
        raise Refused(f"The catalogue has rows 1 to {len(ROWS)}.", code="row_unknown")
    solution: Solution = tuple(turns) if turns else answer
    with transaction.atomic():
        entry = _put(
            verifier,
            Origin(origin),
            name,
            spec.model_dump(mode="json"),
            solution,
            row=row,
            source=source,
            added_by=by.name,
        )
        if entry.retired_at is not None:
            entry.retired_at, entry.retired_by, entry.retired_reason = None, "", ""
            entry.save(update_fields=["retired_at", "retired_by", "retired_reason"])
        _unchecked(verifier)
        audit(actor=by, action="gauntlet.add", obj=entry, origin=origin)
    return entry


def entry_retire(*, entry: GauntletEntry, reason: str, by: Actor) -> None:
    """Take an entry out of the gauntlet, for a reason that stays on record. Its history stays too.

    A smaller gauntlet is another one: the verifier must run it before it may train again.
    """
    reason = reason.strip()
    if not reason:
        raise Refused("Write why this entry is retired.", code="reason_missing")
    with transaction.atomic():
        locked = GauntletEntry.objects.select_for_update().select_related("verifier").get(pk=entry.pk)
        if locked.retired_at is not None:
            raise Conflict("This entry is retired already.", code="entry_retired")
        locked.retired_at, locked.retired_by, locked.retired_reason = timezone.now(), by.name, reason[:300]
        locked.save(update_fields=["retired_at", "retired_by", "retired_reason"])
        _unchecked(locked.verifier)
        audit(actor=by, action="gauntlet.retire", obj=locked, reason=reason[:300])
    entry.refresh_from_db()


def known_answers(asset: TaskAsset, task: TaskSpec) -> tuple[Solution, dict[str, Solution]]:
    """The right answer of a task ("" where none is known) and wrong ones by name."""
    from apps.feedback.assets import failed_answer

    if asset.case is not None:
        wrong = failed_answer(asset)
        return asset.correction, {"the answer that failed": wrong} if wrong else {}
    own: Solution = tuple(asset.turns) if asset.turns else asset.correction
    try:
        pack = pack_named(asset.family.pack)
        bad = dict(pack.bad_answers(task))
        return ("" if task.tags.get("canary") else pack.gold_answer(task)), bad
    except (UnknownPack, ValueError):
        return own, {}


def only_impossible(verifier: Verifier) -> bool:
    """Whether all tasks are impossible ones: then there is no good answer that could be asked for."""
    tasks = _own_or_earlier(verifier)
    return tasks.exists() and not tasks.exclude(task__tags__canary=True).exists()


def owner_of(verifier: Verifier) -> str:
    return f"feedback.verifier:{verifier.pk}"


def _tasks_of(verifier: Verifier) -> list[tuple[TaskAsset, TaskSpec, TaskSpec]]:
    """Some tasks: as they were made, and as this version judges them. A new version has none of its own
    yet and takes those of the others."""
    rows = _own_or_earlier(verifier).select_related("family", "case__capture", "verifier")
    found = []
    for asset in rows.order_by("-case_id", "pk")[:TASKS_CHECKED]:
        made = TaskSpec.model_validate(asset.task)
        if asset.verifier_id == verifier.pk:
            found.append((asset, made, made))
        elif (changed := task_under(asset.task, asset.verifier, verifier, asset.correction)) is not None:
            found.append((asset, made, TaskSpec.model_validate(changed)))
    return found


def _own_or_earlier(verifier: Verifier) -> QuerySet[TaskAsset]:
    in_use = TaskAsset.objects.filter(retired_at=None)
    own = in_use.filter(verifier=verifier)
    return own if own.exists() else in_use.filter(verifier__in=versions_of(verifier))


def _task(data: Mapping[str, Any]) -> TaskSpec:
    """Raises ``Refused`` for what is no task, and for one that its verifier could not judge."""
    try:
        spec = TaskSpec.model_validate(data)
        check_spec(spec.verifier, spec.reference)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "task"
        raise Refused(f"That is no task: {where}: {first['msg']}.", code="task_invalid") from error
    except InvalidVerifier as error:
        raise Refused(f"The task cannot be judged: {error}", code="task_invalid") from error
    return spec


def _has_tasks_of(verifier: Verifier, kind: str) -> bool:
    """A family of a pack may hold tasks of more than one kind; each task says itself how it is judged."""
    return TaskAsset.objects.filter(verifier=verifier, task__verifier__kind=kind).exists()


def _unchecked(verifier: Verifier) -> None:
    Verifier.objects.filter(pk=verifier.pk).update(admission=Verifier.Admission.UNCHECKED)
    publish(project=verifier.project, topic=owner_of(verifier), kind="GauntletChanged", verifier=verifier.pk)


def _put(
    verifier: Verifier, origin: GauntletEntry.Origin, name: str, task: Any, solution: Solution, **more: Any
) -> GauntletEntry:
    answer, turns = (solution, []) if isinstance(solution, str) else ("", list(solution))
    entry, _ = GauntletEntry.objects.update_or_create(
        verifier=verifier,
        name=name[:_NAME],
        defaults={
            "origin": origin,
            "task": task,
            "answer": answer,
            "turns": turns,
            "must_pass": origin == Origin.GOOD,
            **more,
        },
    )
    return entry


def _said(solution: Solution) -> bool:
    turns = (solution,) if isinstance(solution, str) else solution
    return any(turn.strip() for turn in turns)
