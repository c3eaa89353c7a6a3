"""Versions of verifiers: made once, never changed. An edit is the next number, and earns its own admission.

What people added to a version's gauntlet comes along into the next one, judged as that one judges.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import Family, GauntletEntry, Verifier
from domain.contracts import TaskSpec, VerifierSpec
from domain.verifiers import KINDS, InvalidVerifier, UnknownVerifier, check_params, check_spec

MAX_PARAMS = 256 * 1024
_NAME = 100
_MOST_LEVELS = 100


def verifier_create(
    *,
    project: Project,
    name: str,
    kind: str,
    params: Mapping[str, Any],
    note: str = "",
    after: int | None = None,
    by: Actor,
) -> Verifier:
    """The next version of the verifier ``name``, or the one that has this kind and these parameters.

    ``params`` may leave out what each task says itself. ``after`` is the version that was looked at: where
    there is a newer one by now, nothing is made. Raises ``Refused`` with the parameter's place in
    ``detail["field"]``, ``Conflict`` where somebody was faster.
    """
    name, params = name.strip(), dict(params)
    if not name or len(name) > _NAME:
        raise Refused(f"A verifier's name has 1 to {_NAME} characters.", code="name_invalid", field="name")
    params_check(kind, params)
    digest = digest_of(kind, params)
    versions = Verifier.objects.filter(project=project, name=name).order_by("-number")
    try:
        with transaction.atomic():
            latest = versions.select_for_update().first()
            _check_newest(latest, after, name)
            same = versions.filter(digest=digest).first()
            if same is not None:
                return same
            verifier = Verifier.objects.create(
                project=project,
                name=name,
                number=latest.number + 1 if latest else 1,
                kind=kind,
                params=params,
                digest=digest,
                note=note.strip()[:300],
                created_by=by.name,
            )
            carried, left = _carry(latest, verifier) if latest else (0, 0)
            audit(
                actor=by,
                action="verifier.create",
                obj=verifier,
                kind=kind,
                number=verifier.number,
                digest=digest,
                entries_carried=carried,
                entries_left=left,
            )
    except IntegrityError:
        raise Conflict("Somebody else saved a version just now. Look at it, then save again.") from None
    return verifier


def family_use_verifier(*, family: Family, verifier: Verifier, by: Actor) -> None:
    """Let ``family`` judge its next tasks by this version; tasks that exist keep what they were made with."""
    if family.project_id != verifier.project_id:
        raise Refused("The verifier belongs to another project.", code="verifier_foreign")
    with transaction.atomic():
        locked = Family.objects.select_for_update().get(pk=family.pk)
        if locked.verifier_id == verifier.pk:
            return
        before, locked.verifier = locked.verifier_id, verifier
        locked.save(update_fields=["verifier"])
        audit(actor=by, action="family.verifier", obj=locked, verifier=verifier.pk, before=before)
        publish(
            project=verifier.project,
            topic=f"feedback.verifier:{verifier.pk}",
            kind="FamilyVerifier",
            family=locked.pk,
        )


def versions_of(verifier: Verifier) -> QuerySet[Verifier]:
    """All versions of the same name, newest first."""
    return Verifier.objects.filter(project_id=verifier.project_id, name=verifier.name).order_by("-number")


def params_check(kind: str, params: Mapping[str, Any], *, partial: bool = True) -> None:
    """Raises ``Refused``, with the place of what is wrong in ``detail["field"]``."""
    if nested_deeply(params):
        raise Refused("The parameters are nested too deeply.", code="verifier_invalid", field="")
    try:
        size = len(json.dumps(params, allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, TypeError):
        raise Refused("Parameters are JSON, without NaN.", code="verifier_invalid", field="") from None
    if size > MAX_PARAMS:
        raise Refused(f"Parameters have at most {MAX_PARAMS // 1024} KiB.", code="verifier_invalid", field="")
    try:
        check_params(kind, params, partial=partial)
    except UnknownVerifier as problem:
        field = problem.place or "kind"
        raise Refused(str(problem), code="verifier_unknown", field=field) from None
    except InvalidVerifier as problem:
        raise Refused(str(problem), code="verifier_invalid", field=problem.place) from None


def nested_deeply(value: Any) -> bool:
    """Whether JSON is nested deeper than anybody means; counted without recursion."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = [list(one.values()) if isinstance(one, Mapping) else one for one in level if _holds(one)]
        level = [item for items in inner for item in items]
        if not level:
            return False
    return True


def _holds(value: Any) -> bool:
    return isinstance(value, Mapping | list)


def left_to_tasks(kind: str, params: Mapping[str, Any]) -> list[str]:
    """Required parameters that each task has to say itself."""
    return [name for name in KINDS[kind].params_schema.get("required", ()) if name not in params]


def digest_of(kind: str, params: Mapping[str, Any]) -> str:
    text = json.dumps([kind, params], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def task_under(
    task: Mapping[str, Any], old: Verifier, new: Verifier, right: str = ""
) -> dict[str, Any] | None:
    """A task that ``old`` judged as ``new`` judges it; None where it cannot. What the task says itself
    stays. ``right`` is its right answer, the reference of a kind that wants another one."""
    spec = TaskSpec.model_validate(task)
    if spec.verifier.kind != old.kind:  # a family of several kinds: the task is judged as it says
        return dict(task)
    params = dict(new.params)
    if old.kind == new.kind:
        own = {key: value for key, value in spec.verifier.params.items() if old.params.get(key) != value}
        params |= {key: value for key, value in own.items() if key not in old.params or key in new.params}
    verifier = VerifierSpec(kind=new.kind, params=params)
    for reference in (spec.reference, right.strip(), None):
        try:
            check_spec(verifier, reference)
        except InvalidVerifier:
            continue
        return spec.model_copy(update={"verifier": verifier, "reference": reference}).model_dump(mode="json")
    return None


def _check_newest(latest: Verifier | None, after: int | None, name: str) -> None:
    if after is None or (latest.number if latest else 0) == after:
        return
    if after == 0:
        raise Conflict(
            f"There is a verifier “{name}” already. Open it and edit it, or choose another name.",
            code="verifier_exists",
            field="name",
        )
    newest = latest.number if latest else 0
    who = f" by {latest.created_by}" if latest else ""
    raise Conflict(
        f"Version {newest} was saved{who} while you edited version {after}. Look at it, then save again.",
        code="verifier_newer",
        latest=newest,
    )


def _carry(old: Verifier, new: Verifier) -> tuple[int, int]:
    """Copy what people added to the gauntlet, such as confirmed exploits. Returns how many came along, and
    how many the new kind cannot judge."""
    rows, left = [], 0
    for entry in old.entries.in_force().exclude(added_by="").order_by("pk"):
        right = entry.answer if entry.must_pass else ""
        task = task_under(entry.task, old, new, right)
        if task is None:
            left += 1
            continue
        names = ("origin", "name", "answer", "turns", "must_pass", "row", "source", "added_by")
        rows.append(GauntletEntry(verifier=new, task=task, **{name: getattr(entry, name) for name in names}))
    GauntletEntry.objects.bulk_create(rows, batch_size=200)
    return len(rows), left
