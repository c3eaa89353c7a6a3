"""What pages and the API read. Nothing here loads captured text to count rows."""

from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from apps.core.models import Project
from apps.feedback.models import (
    Capture,
    Dataset,
    FailureCase,
    Family,
    GauntletEntry,
    Label,
    TaskAsset,
    Verifier,
)
from apps.feedback.verifiers import versions_of


class Group(NamedTuple):
    """Cases that look alike: how many, how many of them open, and one to show."""

    key: str
    title: str
    family: str
    cases: int
    open: int


class Progress(NamedTuple):
    """Where the label queue stands."""

    position: int
    total: int
    waiting: int


def cases_matching(
    project: Project, *, state: str = "", family: str = "", kind: str = "", group: str = "", q: str = ""
) -> QuerySet[FailureCase]:
    """Cases of the project, newest first, without their text. ``q`` looks into titles, or is a number."""
    rows = FailureCase.objects.filter(project=project).defer("signature")
    exact = {"state": state, "family": family, "kind": kind, "group_key": group}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if q:
        number = int(q) if q.isdigit() and len(q) < 18 else 0
        rows = rows.filter(Q(title__icontains=q) | Q(pk=number))
    return rows


def case_groups(rows: QuerySet[FailureCase], limit: int = 12) -> list[Group]:
    """The largest groups of two or more cases among ``rows``. Two queries."""
    counted = list(
        rows.exclude(group_key="")
        .order_by()
        .values("group_key")
        .annotate(n=Count("pk"), waiting=Count("pk", filter=Q(state=FailureCase.State.NEW)))
        .filter(n__gt=1)
        .order_by("-waiting", "-n")[:limit]
    )
    keys = [row["group_key"] for row in counted]
    project_ids = rows.values("project")[:1]
    heads: dict[str, tuple[str, str]] = {}
    for key, title, family in (
        FailureCase.objects.filter(project__in=project_ids, group_key__in=keys, signature__isnull=False)
        .order_by("-pk")
        .values_list("group_key", "title", "family")
    ):
        heads[key] = (title, family)
    return [
        Group(row["group_key"], *heads.get(row["group_key"], ("", "")), cases=row["n"], open=row["waiting"])
        for row in counted
    ]


def case_full(project: Project, pk: int) -> FailureCase | None:
    """One case with its capture and version."""
    return (
        FailureCase.objects.select_related("project", "capture__version")
        .filter(project=project, pk=pk)
        .first()
    )


def alike_count(case: FailureCase) -> int:
    """Other open cases of the same group."""
    return (
        FailureCase.objects.filter(
            project_id=case.project_id, group_key=case.group_key, state=FailureCase.State.NEW
        )
        .exclude(pk=case.pk)
        .count()
    )


def labels_of(case: FailureCase) -> QuerySet[Label]:
    """The history, newest first, undone ones included."""
    return Label.objects.filter(case=case).order_by("-pk")


def last_decisions(project: Project, by: str, limit: int = 10) -> list[Label]:
    """An actor's last decisions in force, newest first: these stay editable while labelling."""
    rows = Label.objects.filter(case__project=project, by=by, undone_at=None).select_related("case")
    return list(rows.order_by("-pk")[:limit])


def queue_progress(project: Project, family: str = "") -> Progress:
    """How far the queue is: decided cases count as done."""
    rows = FailureCase.objects.filter(project=project)
    if family:
        rows = rows.filter(family=family)
    counts = rows.aggregate(all=Count("pk"), waiting=Count("pk", filter=Q(state=FailureCase.State.NEW)))
    return Progress(counts["all"] - counts["waiting"] + 1, counts["all"], counts["waiting"])


def captures_matching(project: Project, *, state: str = "", source: str = "") -> QuerySet[Capture]:
    """Captures without ciphertext and content: lists and counts never read payloads."""
    rows = Capture.objects.filter(project=project).select_related("version", "case")
    rows = rows.filter(**{k: v for k, v in {"state": state, "source": source}.items() if v})
    return rows.defer("raw", "content", "spans", "pseudonyms", "case__signature")


def assets_matching(
    project: Project, *, family: str = "", split: str = "", origin: str = "", q: str = ""
) -> QuerySet[TaskAsset]:
    """Tasks in use, newest first, without their specification. ``origin`` is "case" or "pack"."""
    rows = TaskAsset.objects.filter(project=project, retired_at=None).select_related("family", "verifier")
    if family:
        rows = rows.filter(family__name=family)
    if split:
        rows = rows.filter(split=split)
    if origin:
        rows = rows.filter(case__isnull=origin == "pack")
    if q:
        rows = rows.filter(key__icontains=q)
    return rows.defer("task", "correction")


def datasets_of(project: Project) -> QuerySet[Dataset]:
    return Dataset.objects.filter(project=project)


def families_of(project: Project) -> QuerySet[Family]:
    """Families with the number of their tasks on each side."""
    return (
        Family.objects.filter(project=project)
        .select_related("verifier")
        .annotate(
            train=Count("assets", filter=Q(assets__split="train", assets__retired_at=None)),
            held_out=Count("assets", filter=Q(assets__split="held_out", assets__retired_at=None)),
        )
    )


def family_named(project: Project, name: str) -> Family | None:
    return Family.objects.select_related("verifier").filter(project=project, name=name).first()


def verifiers_of(project: Project) -> QuerySet[Verifier]:
    return Verifier.objects.filter(project=project)


def verifier_versions(verifier: Verifier) -> QuerySet[Verifier]:
    """All versions of the same name, newest first, each with ``pinned``: tasks that were made with it."""
    return versions_of(verifier).annotate(pinned=Count("assets", filter=Q(assets__retired_at=None)))


def gauntlet_of(verifier: Verifier) -> list[GauntletEntry]:
    """Entries in the order people read them: good, bad, no-op, exploits."""
    order = {origin: at for at, origin in enumerate(GauntletEntry.Origin.values)}
    return sorted(verifier.entries.all(), key=lambda entry: (order[entry.origin], entry.name))


def admitted(family: Family) -> bool:
    """Whether training may use the family's tasks."""
    return family.verifier is not None and family.verifier.admission == Verifier.Admission.ADMITTED


def transcript_of(case: FailureCase) -> list[dict[str, Any]]:
    """The exchange as turns: messages, the answer (marked as failed), what users said about it."""
    content = case.capture.content or {}
    version = case.capture.version
    turns: list[dict[str, Any]] = [dict(message) for message in content.get("messages", [])]
    turns.append(
        {
            "role": "assistant",
            "content": content.get("answer", ""),
            "tool_calls": content.get("tool_calls") or [],
            "meta": version.number if version else "",
            "state": "failed",
        }
    )
    for note in content.get("feedback", []):
        said = [
            f"{note['metric']}: {_shown(note['value'])}" if note.get("value") is not None else note["metric"]
        ]
        said += [f"“{note['comment']}”"] if note.get("comment") else []
        turns.append({"role": "user", "name": "feedback", "content": ", ".join(said)})
    return turns


class Masked(NamedTuple):
    """How many spans were masked, and the placeholders that may be needless."""

    spans: int
    unsure: list[str]


def masked_of(case: FailureCase) -> Masked:
    """What was masked in a case. One person named twice is two spans and one placeholder."""
    content = case.capture.content or {}
    unsure = {_text_at(content, span) for span in case.capture.spans if span.get("unsure")}
    return Masked(len(case.capture.spans), sorted(text for text in unsure if text))


def _text_at(content: Any, span: dict[str, Any]) -> str:
    value = content
    for part in span["path"].split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return ""  # the content grew since, or a field's name holds a dot
    return value[span["start"] : span["end"]] if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
