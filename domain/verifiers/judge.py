"""Judge models say whether the answer meets the criteria; several voices must agree.

The replies come as evidence; here they are read. A reply that is malformed is no verdict, a voice that
changes its mind abstains, and voices that disagree decide nothing: the answer is unscored, never passed
by chance. ``aggregate`` says how voices become one verdict.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.judge_replies import Judgement, Malformed, read_judgement
from domain.verifiers.base import Evidence, VerifierKind, failed, unscored
from domain.verifiers.panel import (
    AGGREGATES,
    EVIDENCE,
    PANEL_SCHEMA,
    Silent,
    check_panel,
    content_problem,
    cut_checks,
    quorum,
    replies_of,
    settled,
    too_few,
    voice_name,
    voices,
)

MIN_WORDS = 3


def threshold_of(params: Mapping[str, Any]) -> float:
    return float(params.get("threshold", 0.5))


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    if why := content_problem(task, answer, MIN_WORDS):
        return failed(why, checks=[Check(name="content", role="guard", score=0.0, reason=why)])
    heard = replies_of(task, evidence)
    if isinstance(heard, str):
        return unscored(heard)

    checks, decided = cut_checks({"answer": answer}), []
    for voice in voices(params):
        said = voice_judgement(heard.get(voice, []), params, answer)
        if isinstance(said, Silent):
            checks.append(Check(name=voice_name(voice), reason=said.reason))
        else:
            decided.append(said)
            checks.append(Check(name=voice_name(voice), score=said.score))
    needed = quorum(params)
    if len(decided) < needed:
        whys = dict.fromkeys(
            check.reason for check in checks if check.score is None and check.role == "terminal"
        )
        return unscored(too_few(len(decided), needed), *whys, checks=checks)
    return _agreed(decided, checks, params)


def voice_judgement(
    entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any], answer: str
) -> Judgement | Silent:
    """What one voice says over its repeats: the mean score of verdicts on the same side."""

    def read(reply: str) -> Judgement | Malformed:
        return read_judgement(reply, threshold_of(params), answer)

    said = settled(entries, params.get("repeats", 1), read, lambda judgement: judgement.passed)
    if isinstance(said, Silent):
        return said
    return Judgement(sum(one.score for one in said) / len(said), said[0].passed)


def _agreed(decided: Sequence[Judgement], checks: Sequence[Check], params: Mapping[str, Any]) -> Verdict:
    aggregate = params.get("aggregate", "unanimous")
    scores = [said.score for said in decided]
    mean, spread = sum(scores) / len(scores), max(scores) - min(scores)
    passes = sum(said.passed for said in decided)
    if aggregate == "unanimous" and passes not in (0, len(decided)):
        return unscored("The judges disagree whether the answer passes.", checks=checks)
    if aggregate == "majority" and 2 * passes == len(decided):
        return unscored("As many judges pass the answer as fail it.", checks=checks)
    limit = params.get("max_spread", 0.4 if aggregate == "unanimous" else 1.0)
    if spread > limit + 1e-9:
        return unscored(f"The judges' scores are {spread:.2f} apart.", checks=checks)
    good = mean >= threshold_of(params) if aggregate == "mean" else 2 * passes > len(decided)
    if good and mean > 0.0:
        return Verdict(state="passed", score=mean, checks=tuple(checks))
    return failed(f"The judges give {mean:.2f}.", score=mean, checks=checks)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_panel("judge", params)


KIND = VerifierKind(
    name="judge",
    title="Judge models",
    description=(
        "Judge models read the answer under the criteria, in at least two ways. Malformed or unstable "
        "verdicts do not count, disagreement leaves it unscored, answers without content fail unasked."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            **PANEL_SCHEMA,
            "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "aggregate": {"enum": list(AGGREGATES)},
            "max_spread": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["criteria"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_check,
)
