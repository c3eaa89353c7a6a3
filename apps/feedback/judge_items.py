"""Answers that people have judged, as what a judge is asked: from labels, corrections and gold answers.

A case that people call no failure has an answer that passes; any other label says that it fails. A
correction passes. Cases about which people disagree say nothing about a judge and are left out.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Prefetch
from pydantic import ValidationError

from apps.core.models import Project
from apps.feedback.models import Capture, FailureCase, GoldAnswer, Judge, JudgedAnswer, Label
from apps.feedback.schemas import NOT_A_FAILURE
from domain.contracts import ChatMessage, TaskSpec, VerifierSpec

MAX_ITEMS = 500
_SCANNED = 5000  # newest labelled cases looked at
_CHUNK = 100
Origin = JudgedAnswer.Origin


class Item(NamedTuple):
    """One answer to be judged. ``source`` is what answers share that are not independent."""

    title: str
    origin: str
    source: str
    messages: tuple[ChatMessage, ...]
    answer: str
    baseline: str
    human: bool
    case_id: int | None = None
    gold_id: int | None = None


class Found(NamedTuple):
    """``left_out`` counts by reason what could not be used."""

    items: list[Item]
    left_out: dict[str, int]


def items_for(project: Project, kind: str, limit: int = MAX_ITEMS) -> Found:
    """At most ``limit`` answers for a judge of ``kind``, gold ones first, then the newest; of too many,
    equally many that pass and that fail as far as there are."""
    left_out: Counter[str] = Counter()
    pairs = kind == Judge.Kind.PAIRWISE
    sides: dict[bool, list[Item]] = {True: [], False: []}
    for item in chain(_gold(project, pairs), _labelled(project, pairs, left_out)):
        if len(sides[item.human]) < limit:  # texts are long; what cannot be taken is not kept
            sides[item.human].append(item)
        else:
            left_out["over_the_limit"] += 1
    good, bad = sides[True], sides[False]
    half = limit // 2
    of_good = min(len(good), max(half, limit - len(bad)))
    of_bad = min(len(bad), limit - of_good)
    if dropped := len(good) + len(bad) - of_good - of_bad:
        left_out["over_the_limit"] += dropped
    return Found([*good[:of_good], *bad[:of_bad]], dict(left_out))


def item_task(judge: Judge, number: int, item: Item) -> TaskSpec:
    """What the worker judges: the item's conversation under the judge's parameters."""
    return TaskSpec(
        id=f"answer-{number}",
        family="calibration",
        messages=item.messages,
        verifier=VerifierSpec(kind=judge.kind, params=judge.params),
        reference=item.baseline or None,
        source=item.source,
    )


def _gold(project: Project, pairs: bool) -> Iterator[Item]:
    rows = GoldAnswer.objects.filter(project=project, retired_at=None).order_by("-pk")[:_SCANNED]
    for row in rows.iterator(chunk_size=_CHUNK):
        if bool(row.baseline) != pairs:
            continue
        asked = (ChatMessage(role="user", content=row.question),)
        yield Item(
            title=row.question[:160],
            origin=Origin.GOLD,
            source=row.source,
            messages=asked,
            answer=row.answer,
            baseline=row.baseline,
            human=row.passes,
            gold_id=row.pk,
        )


def _labelled(project: Project, pairs: bool, left_out: Counter[str]) -> Iterator[Item]:
    in_force = Label.objects.filter(undone_at=None).order_by("-pk")
    cases = (
        FailureCase.objects.filter(project=project, capture__state=Capture.State.ANONYMIZED)
        .filter(Exists(in_force.filter(case=OuterRef("pk"))))
        .select_related("capture")
        .defer("signature", "capture__raw", "capture__spans", "capture__pseudonyms")
        .prefetch_related(Prefetch("labels", in_force, to_attr="in_force"))
        .order_by("-pk")
    )
    for case in cases[:_SCANNED].iterator(chunk_size=_CHUNK):
        yield from _of_case(case, pairs, left_out)


def _of_case(case: Any, pairs: bool, left_out: Counter[str]) -> Iterator[Item]:
    content = case.capture.content or {}
    answer = content.get("answer") or ""
    try:
        messages = tuple(ChatMessage.model_validate(message) for message in content.get("messages", ()))
    except ValidationError:
        messages = ()
    if not messages:
        left_out["unreadable"] += 1
        return
    said = Counter(label.kind == NOT_A_FAILURE for label in case.in_force)
    if said[True] == said[False]:
        left_out["people_disagree"] += 1
        return
    good = said[True] > said[False]
    corrections = [label.correction for label in case.in_force if label.correction]
    correction = "" if good else next(iter(corrections), content.get("correction") or "")
    base: dict[str, Any] = {
        "title": case.title,
        "source": case.capture.cluster or f"case-{case.pk}",
        "messages": messages,
        "case_id": case.pk,
    }
    if pairs:
        if not (answer and correction):
            left_out["no_correction"] += 1
            return
        yield Item(**base, origin=Origin.CORRECTION, answer=correction, baseline=answer, human=True)
        yield Item(**base, origin=Origin.LABEL, answer=answer, baseline=correction, human=False)
        return
    if answer:
        yield Item(**base, origin=Origin.LABEL, answer=answer, baseline="", human=good)
    else:
        left_out["no_text"] += 1
    if correction:
        yield Item(**base, origin=Origin.CORRECTION, answer=correction, baseline="", human=True)
