"""Task assets: a labelled case, or a pack's task, as something that is measured and trained on.

A case's pseudonyms become surrogates of the same type, one map for prompt, answer, correction and
reference. A task is made only if its verifier agrees with the people who labelled the case.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback import cases
from apps.feedback.contents import answer_text
from apps.feedback.labels import move_case
from apps.feedback.models import FailureCase, Family, Label, TaskAsset, Verifier
from domain.contracts import TaskSpec, VerifierSpec
from domain.splits import split_of
from domain.surrogates import surrogate_map, surrogates
from domain.verifiers import InvalidVerifier, check_spec, kinds_of, needs, verify
from domain.verifiers.dates import parse_date
from domain.verifiers.numbers import find_numbers
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object
from domain.verifiers.tool_call import read_call
from packs.registry import Solution, UnknownPack, pack_named

_SPLITS = {"train": TaskAsset.Split.TRAIN, "heldout": TaskAsset.Split.HELD_OUT}


def asset_create(*, case: FailureCase, family: Family, by: Actor) -> TaskAsset:
    """Make the task of a labelled case; making it again returns the same one.

    Raises ``Refused`` with a sentence when the case has no correction, when the correction does not
    pass the verifier, or when the answer that failed does.
    """
    existing = TaskAsset.objects.filter(case=case, retired_at=None).first()
    if existing is not None:
        return existing
    if case.state != FailureCase.State.LABELLED:
        raise Conflict("Label the case before you make a task of it.", code="case_unlabelled")
    if family.verifier is None:
        raise Refused(f"The family “{family.title}” has no verifier yet.", code="verifier_missing")
    content, correction = _with_surrogates(case)
    source = case.capture.cluster or case.group_key or f"case:{case.pk}"
    task = case_task(
        case=case,
        verifier=family.verifier,
        content=content,
        correction=correction,
        family=family.name,
        source=source,
        max_tokens=_max_tokens(family),
    )
    _check_agreement(task, correction=correction, wrong=answer_text(content))
    with transaction.atomic():
        locked = FailureCase.objects.select_for_update().select_related("project").get(pk=case.pk)
        raced = TaskAsset.objects.filter(case=locked, retired_at=None).first()
        if raced is not None:
            return raced
        move_case(locked, FailureCase.State.ASSET)
        locked.save(update_fields=["state"])
        asset = TaskAsset.objects.create(
            project=case.project,
            case=locked,
            family=family,
            verifier=family.verifier,
            key=task.id,
            task=task.model_dump(mode="json"),
            correction=correction,
            source=source,
            split=_SPLITS[split_of(source)],
            created_by=by.name,
        )
        lineage_record(project=case.project, parent=cases.case_node(locked), child=asset_node(asset))
        audit(actor=by, action="asset.create", obj=asset, case=case.pk, family=family.name)
        publish(project=case.project, topic="feedback.assets", kind="AssetCreated", asset=asset.pk)
    case.state = FailureCase.State.ASSET
    return asset


def assets_import(
    *,
    project: Project,
    family: Family,
    tasks: Iterable[TaskSpec],
    by: Actor,
    solutions: Mapping[str, Solution | None] | None = None,
) -> list[TaskAsset]:
    """Add tasks of a pack; a task whose id exists already is kept as it is. Returns those that are new.

    ``solutions`` are the right ones by task id, where the caller has them already: some packs take
    seconds to work them out, and nobody should wait for them inside a transaction. Raises ``Refused``
    and imports nothing when a task does not fit the family.
    """
    if family.verifier is None:
        raise Refused(f"The family “{family.title}” has no verifier yet.", code="verifier_missing")
    specs = list(tasks)
    kinds = {family.verifier.kind, *_kinds_of_pack(family)}
    for task in specs:
        if task.verifier.kind not in kinds:
            raise Refused(
                f"Task {task.id} is judged by “{task.verifier.kind}”, the family by "
                f"“{family.verifier.kind}”.",
                code="verifier_mismatch",
            )
        try:
            check_spec(task.verifier, task.reference)
        except InvalidVerifier as problem:
            raise Refused(f"Task {task.id}: {problem}", code="task_invalid") from None
    right = solutions if solutions is not None else solutions_of(family.pack, specs)
    with transaction.atomic():
        ids = [task.id[:120] for task in specs]
        known = set(
            TaskAsset.objects.filter(project=project, key__in=ids, number=1).values_list("key", flat=True)
        )
        fresh = {task.id[:120]: task for task in specs if task.id[:120] not in known}
        assets = [
            TaskAsset(
                project=project,
                family=family,
                verifier=family.verifier,
                key=key,
                task=task.model_dump(mode="json"),
                **_columns(right.get(task.id)),
                source=(task.source or task.id)[:120],
                split=_SPLITS[split_of(task.source or task.id)],
                created_by=by.name,
            )
            for key, task in fresh.items()
        ]
        TaskAsset.objects.bulk_create(assets, ignore_conflicts=True, batch_size=200)
        if fresh:
            audit(actor=by, action="assets.import", obj=family, count=len(fresh))
            publish(project=project, topic="feedback.assets", kind="AssetsImported", count=len(fresh))
    return list(TaskAsset.objects.filter(project=project, key__in=list(fresh), number=1).order_by("pk"))


def solutions_of(pack: str, tasks: Iterable[TaskSpec]) -> dict[str, Solution | None]:
    """The pack's right solutions by task id; None for an impossible task, and for one not its own."""
    return {task.id: _solution(pack, task) for task in tasks}


def _solution(pack: str, task: TaskSpec) -> Solution | None:
    if not pack or task.tags.get("canary"):
        return None
    try:
        return pack_named(pack).gold_answer(task)
    except (UnknownPack, ValueError):
        return None


def asset_retire(*, asset: TaskAsset, by: Actor) -> None:
    """Leave the task out of future datasets; those that exist keep it. Idempotent."""
    from django.utils import timezone

    if asset.retired_at is None:
        asset.retired_at = timezone.now()
        asset.save(update_fields=["retired_at"])
        audit(actor=by, action="asset.retire", obj=asset)


def asset_node(asset: TaskAsset) -> Node:
    return Node(asset.lineage_key, f"Task {asset.key}", asset.get_absolute_url())


def failed_answer(asset: TaskAsset) -> str:
    """The answer that made the case, with the asset's own surrogates; "" for a pack's task."""
    if asset.case is None or asset.case.capture.content is None:
        return ""
    content, _ = _with_surrogates(asset.case)
    return answer_text(content)


def correction_of(case: FailureCase) -> str:
    """What people say the answer should have been: the label's word first, then the user's."""
    labels = Label.objects.filter(case=case, undone_at=None).exclude(correction="").order_by("-pk")
    label = labels.first()
    if label is not None:
        return label.correction
    return str((case.capture.content or {}).get("correction", ""))


def suggestion_for(case: FailureCase, family: Family | None, correction: str) -> dict[str, Any]:
    """What the verifier would say: ``{"ready", "sentence"}`` for the labelling screen. Writes nothing."""
    if family is None or family.verifier is None or not correction.strip():
        return {"ready": False, "sentence": ""}
    content = case.capture.content or {}
    try:
        task = case_task(case=case, verifier=family.verifier, content=content, correction=correction)
        _check_agreement(task, correction=correction, wrong=answer_text(content))
    except Refused as refused:
        return {"ready": False, "sentence": refused.message}
    return {"ready": True, "sentence": "would fail this answer, pass yours"}


def _with_surrogates(case: FailureCase) -> tuple[dict[str, Any], str]:
    return with_surrogates(case, correction_of(case))


def with_surrogates(case: FailureCase, correction: str) -> tuple[dict[str, Any], str]:
    """Content and correction with invented people in place of the pseudonyms, the same in both."""
    content = dict(case.capture.content or {})
    together = {"content": content, "correction": correction}
    # Seeded by the capture: the same case always gets the same invented people.
    mapping = surrogate_map(together, seed=case.capture_id)
    replaced = surrogates(together, mapping)
    return replaced["content"], replaced["correction"]


def case_task(
    *,
    case: FailureCase,
    verifier: Verifier,
    content: Mapping[str, Any],
    correction: str,
    family: str = "preview",
    source: str = "preview",
    max_tokens: int = 96,
) -> TaskSpec:
    """The task that a case makes under ``verifier``. Where the exchange brings no reference, it follows from
    the correction. Raises ``Refused`` with a sentence."""
    own = content.get("verifier") or {}
    kind = verifier.kind
    params = dict(verifier.params)
    reference = content.get("reference")
    if own.get("kind") == kind:
        params |= own.get("params") or {}
    if reference is None:
        if not correction.strip():
            raise Refused(
                "Write the right answer first: the task needs to know what passes.", code="correction_missing"
            )
        params, reference = _reference(kind, params, correction)
    spec = VerifierSpec(kind=kind, params=params)
    try:
        check_spec(spec, reference)
    except InvalidVerifier as problem:
        raise Refused(f"This does not make a task: {problem}", code="task_invalid") from None
    return TaskSpec(
        id=f"case-{case.pk}",
        family=family,
        messages=content["messages"],
        verifier=spec,
        reference=reference,
        tools=tuple(content.get("tools") or ()),
        source=source,
        max_tokens=max_tokens,
    )


def _reference(kind: str, params: dict[str, Any], correction: str) -> tuple[dict[str, Any], Any]:
    """Parameters and reference as the correction implies them."""
    try:
        if kind == "json_fields":
            value = json.loads(json.dumps(parse_strict_object(correction, fence=True), default=float))
            fields = params.get("fields") or {}
            if set(fields) != set(value):
                params = {**params, "fields": {name: _field_type(item) for name, item in value.items()}}
            return params, value
        if kind == "tool_call":
            name, arguments = read_call(correction, fence=True)
            return params, {"name": name, "arguments": json.loads(json.dumps(arguments, default=float))}
    except NotStrictJson as problem:
        raise Refused(f"The right answer cannot be read: {problem}", code="correction_unreadable") from None
    if kind == "numeric":
        found = find_numbers(correction, params.get("decimal", "auto"))
        if len(found) != 1 or found[0].value is None:
            raise Refused(
                f"The right answer must hold exactly one number; it holds {len(found)}.",
                code="correction_unreadable",
            )
        number = found[0].value
        return params, int(number) if number == number.to_integral_value() else float(number)
    if kind == "python_tests":
        raise Refused(
            "A Python task needs calls with expected results, which a corrected answer does not carry. "
            "Send the case with a reference, or import the task from a pack.",
            code="reference_missing",
        )
    return params, _plain_reference(kind, params, correction)


def _plain_reference(kind: str, params: dict[str, Any], correction: str) -> str | None:
    """Nothing where the verifier asks for nothing, else the correction itself. A grading function may ask
    for it in ways that nobody can see."""
    spec = VerifierSpec(kind=kind, params=params)
    asks = "grader_python" in kinds_of(spec)
    for reference in (correction.strip(), None) if asks else (None, correction.strip()):
        try:
            check_spec(spec, reference)
        except InvalidVerifier:
            continue
        return reference
    raise Refused(
        f"A task for the verifier “{kind}” needs a reference, which this case does not carry.",
        code="reference_missing",
    )


def _field_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "date" if isinstance(value, str) and parse_date(value) is not None else "text"


def _check_agreement(task: TaskSpec, *, correction: str, wrong: str) -> None:
    """The correction must pass and the failed answer must not. What needs a sandbox to judge is left
    to the gauntlet, which has one."""
    if needs(task.verifier):
        return
    if correction.strip():
        verdict = verify(task, correction, {})
        if verdict.state != "passed":
            why = verdict.reasons[0] if verdict.reasons else "no reason given."
            raise Refused(f"The right answer does not pass the verifier: {why}", code="correction_fails")
    if verify(task, wrong, {}).state == "passed":
        raise Refused(
            "The answer that was called a failure passes the verifier, so the task would teach nothing. "
            "Check the label, or the family.",
            code="failure_passes",
        )


def _max_tokens(family: Family) -> int:
    """As long as the family's other tasks allow."""
    latest = TaskAsset.objects.filter(family=family).order_by("-pk").values_list("task", flat=True).first()
    return int(latest["max_tokens"]) if latest and "max_tokens" in latest else 96


def _kinds_of_pack(family: Family) -> tuple[str, ...]:
    """The kinds that the family's pack declares: a family may hold tasks of more than one."""
    try:
        entries = pack_named(family.pack).families if family.pack else ()
    except UnknownPack:
        return ()
    return next((entry.verifier_kinds for entry in entries if entry.name == family.name), ())


def _columns(gold: Solution | None) -> dict[str, Any]:
    if gold is None:
        return {}
    return {"correction": gold} if isinstance(gold, str) else {"turns": list(gold)}
