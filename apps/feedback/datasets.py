"""Datasets: immutable numbered lists of assets, stored as one JSONL artifact named by its content."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction

from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.assets import asset_node, failed_answer
from apps.feedback.contents import Invalid, identifier_checked
from apps.feedback.models import Dataset, Family, TaskAsset
from artifacts import get_store
from domain.contracts import TaskSpec

_LINEAGE_LIMIT = 200


def dataset_create(
    *, project: Project, name: str, kind: str = "rl", split: str = "train", families: list[str], by: Actor
) -> Dataset:
    """The next version of ``name``: all tasks of ``families`` (names) on one side of the split.

    Returns the latest version instead when nothing would differ. Raises ``Refused`` when no task fits.
    """
    try:
        name = identifier_checked(name.strip(), "name")[:100]
    except Invalid as problem:
        raise Refused(str(problem), code="name_invalid") from None
    for value, choices, what in (
        (kind, Dataset.Kind.values, "kind"),
        (split, TaskAsset.Split.values, "split"),
    ):
        if value not in choices:
            raise Refused(f"“{value}” is not a {what}. Choose {', '.join(choices)}.", code=f"{what}_unknown")
    known = set(Family.objects.filter(project=project).values_list("name", flat=True))
    unknown = [family for family in families if family not in known]
    if unknown or not families:
        why = f"There is no family “{unknown[0]}”." if unknown else "Choose at least one family."
        raise Refused(why, code="family_unknown")
    assets = list(
        TaskAsset.objects.filter(project=project, family__name__in=families, split=split, retired_at=None)
        .select_related("family", "case__capture", "case__project")
        .order_by("key", "number")
    )
    used, lines = _lines(kind, assets)
    if not lines:
        raise Refused(_why_empty(kind, split, bool(assets)), code="dataset_empty")
    digest = get_store().put_jsonl(lines)
    with transaction.atomic():
        latest = (
            Dataset.objects.select_for_update().filter(project=project, name=name).order_by("-number").first()
        )
        if latest is not None and (latest.tasks_digest, latest.kind, latest.split) == (digest, kind, split):
            return latest
        dataset = Dataset.objects.create(
            project=project,
            name=name,
            number=latest.number + 1 if latest else 1,
            kind=kind,
            split=split,
            tasks_digest=digest,
            count=len(lines),
            created_by=by.name,
        )
        dataset.assets.set(used)
        for asset in [asset for asset in used if asset.case_id is not None][:_LINEAGE_LIMIT]:
            lineage_record(project=project, parent=asset_node(asset), child=dataset_node(dataset))
        audit(actor=by, action="dataset.create", obj=dataset, kind=kind, count=len(lines))
        publish(project=project, topic="feedback.datasets", kind="DatasetCreated", dataset=dataset.pk)
    return dataset


def dataset_node(dataset: Dataset) -> Node:
    return Node(dataset.lineage_key, f"Dataset {dataset}", dataset.get_absolute_url())


def dataset_bytes(dataset: Dataset) -> bytes:
    """The JSONL as it is stored; its sha256 is ``tasks_digest``."""
    return get_store().get(dataset.tasks_digest)


def _lines(kind: str, assets: list[TaskAsset]) -> tuple[list[TaskAsset], list[dict[str, Any]]]:
    used, lines = [], []
    for asset in assets:
        for line in _line(kind, asset):
            used.append(asset)
            lines.append(line)
    return used, lines


def _line(kind: str, asset: TaskAsset) -> Iterator[dict[str, Any]]:
    task = TaskSpec.model_validate(asset.task)
    if kind == Dataset.Kind.RL:
        yield task.model_dump(mode="json")
        return
    if not asset.correction:
        return
    prompt = [message.model_dump(mode="json", exclude_none=True) for message in task.messages]
    tools = {"tools": list(task.tools)} if task.tools else {}
    right = {"role": "assistant", "content": asset.correction}
    if kind == Dataset.Kind.SFT:
        yield {"messages": [*prompt, right], **tools}
        return
    wrong = failed_answer(asset)
    if wrong:
        yield {
            "prompt": prompt,
            "chosen": [right],
            "rejected": [{"role": "assistant", "content": wrong}],
            **tools,
        }


def _why_empty(kind: str, split: str, has_assets: bool) -> str:
    side = TaskAsset.Split(split).label.lower()
    if not has_assets:
        return f"These families have no {side} tasks yet."
    if kind == Dataset.Kind.SFT:
        return f"None of the {side} tasks has a right answer to learn from."
    return f"None of the {side} tasks has both a right and a wrong answer."
