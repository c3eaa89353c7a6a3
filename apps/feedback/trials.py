"""A verifier tried on answers before anybody relies on it, saved or not.

What needs nothing but the answer is judged at once; the rest by a worker, and the trial is read when its
unit has finished.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import unit_create
from apps.feedback.models import FailureCase, VerifierTrial
from apps.feedback.verifiers import nested_deeply, params_check
from apps.versions.selectors import judge_targets
from artifacts import get_store
from domain.contracts import ChatMessage, RunVerifyBatch, TaskSpec, Verdict, VerifierSpec, VerifyBatchResult
from domain.storable import storable
from domain.verifiers import InvalidVerifier, check_spec, needs, verify

MAX_ANSWERS = 20
MAX_ANSWER = 3_000_000
_MAX_TOGETHER = 4_000_000  # characters
_KEPT = 200  # trials of a project
_CHECKS, _REASONS = 60, 20


class Tried(NamedTuple):
    """``results`` in the order of the answers; None while a worker judges (``trial``)."""

    results: list[dict[str, Any]] | None
    trial: VerifierTrial | None


def verifier_try(
    *,
    project: Project,
    kind: str,
    params: Mapping[str, Any],
    answers: Sequence[str],
    reference: Any = None,
    question: str = "",
    case: FailureCase | None = None,
    by: Actor,
) -> Tried:
    """Judge ``answers``. With ``case``, its conversation is the question, and what is not given comes from
    it: the answers (its own and the correction), and the reference."""
    params_check(kind, params, partial=False)
    spec = VerifierSpec(kind=kind, params=dict(params))
    messages = [ChatMessage(role="user", content=question or "?")]
    if case is not None:
        messages, reference, answers = _of_case(case, spec, reference, answers)
    task = TaskSpec(
        id="trial", family="trial", messages=tuple(messages), verifier=spec, reference=_fits(spec, reference)
    )
    _check_answers(answers)
    if not needs(spec):
        return Tried([result_of(verify(task, answer, {})) for answer in answers], None)
    return Tried(None, _start(project, task, answers, by))


def trial_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Store what was said of every answer, from the evidence that the worker found."""
    trial = _of(unit)
    if trial is None or trial.finished_at is not None:
        return
    done = VerifyBatchResult.model_validate(result)
    store = get_store()
    items, outcomes = store.iter_jsonl(trial.items_digest), store.iter_jsonl(done.results_digest)
    results = []
    for item, outcome in zip(items, outcomes, strict=True):
        if outcome["states"][0] == "error":
            failed = {"state": "error", "score": None, "checks": [], "reasons": outcome["reasons"]}
            results.append(failed)
            continue
        task = TaskSpec.model_validate(item["task"])
        results.append(result_of(verify(task, item["answer"], outcome.get("evidence") or {})))
    trial.results, trial.finished_at = storable(results), timezone.now()
    trial.save(update_fields=["results", "finished_at"])
    publish(project=unit.project, topic=unit.owner, kind="TrialFinished", say="The answers are judged")


def trial_failed(unit: WorkUnit, error: str) -> None:
    trial = _of(unit)
    if trial is None or trial.finished_at is not None:
        return
    trial.error, trial.finished_at = error[:2000], timezone.now()
    trial.save(update_fields=["error", "finished_at"])
    publish(project=unit.project, topic=unit.owner, kind="TrialFinished")


def result_of(verdict: Verdict) -> dict[str, Any]:
    """A verdict as pages and the API show it."""
    checks = [check.model_dump(mode="json") for check in verdict.checks[:_CHECKS]]
    reasons = [reason[:500] for reason in verdict.reasons[:_REASONS]]
    return {"state": verdict.state, "score": verdict.score, "checks": checks, "reasons": reasons}


def answers_of(trial: VerifierTrial) -> list[str]:
    return [item["answer"] for item in get_store().iter_jsonl(trial.items_digest)]


def owner_of(trial: VerifierTrial) -> str:
    return f"feedback.trial:{trial.pk}"


def _start(project: Project, task: TaskSpec, answers: Sequence[str], by: Actor) -> VerifierTrial:
    data = task.model_dump(mode="json")
    digest = get_store().put_jsonl({"task": data, "answer": answer, "turns": []} for answer in answers)
    with transaction.atomic():
        trial = VerifierTrial.objects.create(
            project=project,
            kind=task.verifier.kind,
            items_digest=digest,
            size=len(answers),
            started_by=by.name,
        )
        owner = owner_of(trial)
        unit_create(
            project=project,
            kind="verify_batch",
            key=f"trial:{trial.pk}",
            owner=owner,
            queue="eval",
            priority=9,  # somebody is waiting for it
            max_attempts=2,
            message=RunVerifyBatch(
                items_digest=digest, repeats=1, judges=judge_targets(project, owner), keep_evidence=True
            ),
        )
        audit(actor=by, action="verifier.try", obj=trial, kind=task.verifier.kind, answers=len(answers))
        old = VerifierTrial.objects.filter(project=project).order_by("-pk").values_list("pk", flat=True)
        VerifierTrial.objects.filter(pk__in=list(old[_KEPT : _KEPT + 50])).delete()
        publish(project=project, topic=owner, kind="TrialStarted")
    return trial


def _of_case(
    case: FailureCase, spec: VerifierSpec, reference: Any, answers: Sequence[str]
) -> tuple[list[ChatMessage], Any, Sequence[str]]:
    from apps.feedback.assets import correction_of

    content = case.capture.content
    if content is None:
        raise Refused("This case has no text that may be read yet.", code="case_unreadable", field="case")
    messages = [ChatMessage.model_validate(message) for message in content["messages"]]
    correction = correction_of(case)
    if not answers:
        answers = [text for text in (content.get("answer", ""), correction) if text.strip()]
    if reference is None:
        reference = content.get("reference")
    if reference is None and correction.strip():
        reference = correction
    return messages, reference, answers


def _fits(spec: VerifierSpec, reference: Any) -> Any:
    """``reference``, or what it is read as: text may be JSON. Raises ``Refused``."""
    if nested_deeply(reference):
        raise Refused("The reference is nested too deeply.", code="reference_invalid", field="reference")
    candidates = [reference]
    if isinstance(reference, str):
        with suppress(ValueError, RecursionError):
            first = 0 if reference.strip()[:1] in ("[", "{") else 1  # "42" may be meant as a text
            value = json.loads(reference, parse_constant=_refuse)
            candidates.insert(first, None if nested_deeply(value) else value)
        candidates += [] if reference.strip() else [None]
    problem = ""
    for candidate in candidates:
        try:
            check_spec(spec, candidate)
        except InvalidVerifier as error:
            problem = problem or str(error)
            continue
        return candidate
    raise Refused(problem, code="reference_invalid", field="reference")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _check_answers(answers: Sequence[str]) -> None:
    if not answers:
        raise Refused("Paste an answer to try.", code="answers_missing", field="answers")
    if len(answers) > MAX_ANSWERS:
        raise Refused(f"Try at most {MAX_ANSWERS} answers at once.", code="answers_many", field="answers")
    if sum(map(len, answers)) > _MAX_TOGETHER or max(map(len, answers)) > MAX_ANSWER:
        raise Refused(
            "An answer has at most 3 million characters, all together 4 million.",
            code="answers_large",
            field="answers",
        )


def _of(unit: WorkUnit) -> VerifierTrial | None:
    """None where it was deleted meanwhile."""
    key = int(unit.owner.rpartition(":")[2])
    return VerifierTrial.objects.select_for_update().filter(pk=key).first()
