"""Judges and gold answers: what a project sets up before it can measure a judge."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import GoldAnswer, Judge
from domain.contracts import VerifierSpec
from domain.judge_specs import effective
from domain.verifiers import InvalidVerifier, check_spec

MAX_GOLD = 1000
MAX_TEXT = 64 * 1024
_BASELINE = "a baseline"  # stands for the answer that a comparison brings later


def judge_save(
    *, project: Project, name: str, kind: str, params: Mapping[str, Any], note: str = "", by: Actor
) -> Judge:
    """The next version of the judge ``name``. Saving what its newest version says already is refused.

    Raises ``Refused`` for parameters that no judge could work with, in words.
    """
    name = " ".join(name.split())
    if not name or len(name) > 100:
        raise Refused("Give the judge a name of at most 100 characters.", code="name_invalid")
    if kind not in Judge.Kind.values:
        raise Refused(f"A judge is one of: {', '.join(Judge.Kind.values)}.", code="kind_unknown")
    if "question" in params:
        raise Refused("Leave out “question”: every answer brings its own.", code="params_invalid")
    _storable(params)
    try:
        spec = VerifierSpec(kind=kind, params=dict(params))
        check_spec(spec, _BASELINE if kind == Judge.Kind.PAIRWISE else None)
    except (InvalidVerifier, ValueError) as problem:
        raise Refused(f"The judge cannot work like this. {problem}", code="params_invalid") from None
    digest = judge_digest(kind, params)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        newest = Judge.objects.filter(project=project, name=name).order_by("-number").first()
        if newest is not None and newest.digest == digest:
            raise Conflict(f"{newest} says exactly this already.", code="judge_unchanged")
        judge = Judge.objects.create(
            project=project,
            name=name,
            number=newest.number + 1 if newest else 1,
            kind=kind,
            params=dict(params),
            digest=digest,
            setup=judge_setup(kind, params),
            note=note.strip()[:200],
            created_by=by.name,
        )
        audit(actor=by, action="judge.save", obj=judge, kind=kind, number=judge.number)
        publish(project=project, topic=judge.lineage_key, kind="JudgeSaved")
    return judge


def gold_add(*, project: Project, items: Sequence[Mapping[str, Any]], by: Actor) -> dict[str, int]:
    """Add answers with the verdict that people settled on: ``question``, ``answer``, ``passes``, and
    optionally ``baseline`` and ``source``. All or nothing; the same answer again is kept once, with the
    newer verdict. Returns ``{"added", "changed", "same"}``."""
    if not 1 <= len(items) <= MAX_GOLD:
        raise Refused(f"Send 1 to {MAX_GOLD:,} answers; these are {len(items):,}.", code="items_count")
    rows = [_gold(project, number, item, by) for number, item in enumerate(items, start=1)]
    wanted = {row.digest: row for row in rows}
    if any(wanted[row.digest].passes != row.passes for row in rows):
        raise Refused("The same answer stands there as passing and as failing.", code="gold_contradicts")
    counts = {"added": 0, "changed": 0, "same": 0}
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        known = {
            row.digest: row for row in GoldAnswer.objects.filter(project=project, digest__in=list(wanted))
        }
        fresh = [row for digest, row in wanted.items() if digest not in known]
        GoldAnswer.objects.bulk_create(fresh, batch_size=200)
        counts["added"] = len(fresh)
        for digest, old in known.items():
            new = wanted[digest]
            if (old.passes, old.retired_at) == (new.passes, None):
                counts["same"] += 1
                continue
            old.passes, old.retired_at, old.added_by = new.passes, None, by.name
            old.save(update_fields=["passes", "retired_at", "added_by"])
            counts["changed"] += 1
        audit(actor=by, action="gold.add", obj=project, counts=counts)
        publish(project=project, topic="feedback.gold", kind="GoldAnswersAdded", **counts)
    return counts


def gold_retire(*, gold: GoldAnswer, by: Actor) -> None:
    """Use the answer no more; earlier calibrations keep what they said of it."""
    with transaction.atomic():
        taken = GoldAnswer.objects.filter(pk=gold.pk, retired_at=None).update(retired_at=timezone.now())
        if not taken:
            raise Conflict("This gold answer is retired already.", code="gold_retired")
        audit(actor=by, action="gold.retire", obj=gold)
        publish(project=gold.project, topic="feedback.gold", kind="GoldAnswerRetired", gold=gold.pk)


def judge_digest(kind: str, params: Mapping[str, Any]) -> str:
    """Names a judge by all that changes its verdicts, whether a default is written out or not."""
    return _digest(kind, effective(kind, params))


def judge_setup(kind: str, params: Mapping[str, Any]) -> str:
    """Names the same judge under any criteria and labels."""
    left = ("criteria", "labels", "passing_labels")
    return _digest(kind, {key: value for key, value in effective(kind, params).items() if key not in left})


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _gold(project: Project, number: int, item: Mapping[str, Any], by: Actor) -> GoldAnswer:
    words = {}
    for field in ("question", "answer", "baseline", "source"):
        value = item.get(field) or ""
        if not isinstance(value, str):
            _refuse(number, f"“{field}” must be a text")
        words[field] = value.strip() if field in ("question", "source") else value
        if len(value) > MAX_TEXT:
            _refuse(number, f"“{field}” is longer than {MAX_TEXT:,} characters")
        if "\0" in value or any(0xD800 <= ord(sign) <= 0xDFFF for sign in value):
            _refuse(number, f"“{field}” holds a character that cannot be stored")
    if unknown := set(item) - {"question", "answer", "baseline", "source", "passes"}:
        _refuse(number, f"“{sorted(unknown)[0]}” is not a field here")
    if not words["question"] or not words["answer"].strip():
        _refuse(number, "a question and an answer are needed")
    if not isinstance(item.get("passes"), bool):
        _refuse(number, "“passes” must be true or false")
    digest = _digest(words["question"], words["answer"], words["baseline"])
    return GoldAnswer(
        project=project,
        digest=digest,
        question=words["question"],
        answer=words["answer"],
        baseline=words["baseline"],
        passes=item["passes"],
        source=(words["source"] or f"gold-{_digest(words['question'])[:24]}")[:120],
        added_by=by.name,
    )


def _refuse(number: int, reason: str) -> None:
    raise Refused(f"Gold answer {number}: {reason}. Nothing was added.", code="gold_invalid", item=number)


def _storable(params: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(params, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise Refused("The parameters are not valid JSON text.", code="params_invalid") from None
    if "\\u0000" in text:
        raise Refused("The parameters hold the NUL character.", code="params_invalid")
