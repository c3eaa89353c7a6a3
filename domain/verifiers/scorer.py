"""The answer is scored by the data set that made the task, with reasoning-gym's own scorer.

A sandbox makes the entry again from data set, configuration and seed, and scores the answer under the
evidence key ``scorer``: ``{"status", "score", "reason", "detail"}``. Passed means a score of exactly 1:
many data sets give small change for any text, and it is not taken. The guards of
``scorer_guards.py`` hold before and after: what they refuse never reaches a scorer.
"""

from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, unscored
from domain.verifiers.python_tests import DIED
from domain.verifiers.scorer_guards import guard, marked

EVIDENCE = "scorer"


def scored_text(task: TaskSpec, answer: str) -> tuple[str, str]:
    """What the scorer may see, and why it must not (then the first is empty)."""
    known, text = task.reference["answer"], marked(answer)
    if text == known.strip():
        return known, ""  # some known answers begin or end with white space that scorers insist on
    refused = guard(task.reference["dataset"], text, known)
    return ("" if refused else text), refused


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    _, refused = scored_text(task, answer)
    if refused:
        return failed(refused, checks=[Check(name="form", role="format", score=0.0, reason=refused)])
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The answer was not scored: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))[:200]
    form = Check(name="form", role="format", score=1.0)
    if status in DIED:
        return failed(f"The scorer did not come to an end. {DIED[status]} {detail}".rstrip(), checks=[form])
    if status != "ok":
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail}".rstrip())
    score = report.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return unscored("The scorer gave no number.")
    if score == 1.0:
        return passed([form, Check(name="score", score=1.0)])
    reason = str(report.get("reason", ""))[:200] or f"The data set's scorer gives {score:.3g} of 1."
    return failed(reason, checks=[form, Check(name="score", score=0.0, reason=reason)])


KIND = VerifierKind(
    name="scorer",
    title="Data set's scorer",
    description=(
        "reasoning-gym makes the task again in a sandbox and scores the answer with the data set's own "
        "scorer; only the full score passes. What could run as code or fool a scorer is refused before."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={"type": "object", "properties": {}, "additionalProperties": False},
    reference_schema={
        "type": "object",
        "properties": {
            "dataset": {"type": "string", "pattern": "^[a-z0-9_]+$"},
            "seed": {"type": "integer", "minimum": 0},
            "config": {"type": "object"},
            "entry": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
            "answer": {"type": "string", "pattern": r"\S"},
        },
        "required": ["dataset", "seed", "entry", "answer"],
        "additionalProperties": False,
    },
)


def request(task: TaskSpec) -> dict[str, Any]:
    """What the sandbox needs to make the entry again; never the known answer."""
    reference = task.reference
    return {
        "dataset": reference["dataset"],
        "seed": reference["seed"],
        "config": reference.get("config", {}),
        "entry": reference["entry"],
    }
