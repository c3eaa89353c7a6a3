"""Judge models say whether the answer is better than a baseline answer, asked in both orders.

A voice that prefers the answer in one order and the baseline in the other has judged the place, not the
text: that is a tie. Win, tie and loss score 1, 0.5 and 0; ``passing_outcomes`` says what passes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from domain.contracts import Check, TaskSpec, Verdict
from domain.judge_replies import Malformed, read_choice
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
ORDERS = ("first", "second")  # the place of the answer that is judged
SCORES: Mapping[str, float] = {"win": 1.0, "tie": 0.5, "loss": 0.0}


class Preference(NamedTuple):
    """What one voice makes of both orders. ``first`` and ``second`` are the outcomes in each."""

    outcome: str
    first: str
    second: str

    @property
    def contradicts(self) -> bool:
        """Whether the order alone turned a win into a loss."""
        return {self.first, self.second} == {"win", "loss"}


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    if why := content_problem(task, answer, MIN_WORDS):
        return failed(why, checks=[Check(name="content", role="guard", score=0.0, reason=why)])
    if same_text(answer, task.reference):
        same = Check(
            name="comparison", score=0.5, reason="The answer is the baseline: a tie, nobody was asked."
        )
        return _verdict("tie", 0.5, [same], params)
    heard = replies_of(task, evidence)
    if isinstance(heard, str):
        return unscored(heard)

    checks, decided = cut_checks({"answer": answer, "baseline": task.reference}), []
    for voice in voices(params):
        said = voice_preference(heard.get(voice, []), params, f"{answer}\n{task.reference}")
        if isinstance(said, Silent):
            checks.append(Check(name=voice_name(voice), reason=said.reason))
        else:
            decided.append(said)
            checks.append(Check(name=voice_name(voice), score=SCORES[said.outcome], reason=_words(said)))
    needed = quorum(params)
    if len(decided) < needed:
        whys = dict.fromkeys(
            check.reason for check in checks if check.score is None and check.role == "terminal"
        )
        return unscored(too_few(len(decided), needed), *whys, checks=checks)
    return _agreed([said.outcome for said in decided], checks, params)


def voice_preference(
    entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any], texts: str
) -> Preference | Silent:
    """One voice over both orders and all repeats; it abstains unless each order is settled."""

    def read(reply: str) -> str | Malformed:
        return read_choice(reply, texts)

    outcomes = []
    for order in ORDERS:
        own = [entry for entry in entries if entry.get("order") == order]
        said = settled(own, params.get("repeats", 1), read, lambda choice: choice)
        if isinstance(said, Silent):
            return said
        outcomes.append(outcome_of(said[0], order))
    first, second = outcomes
    return Preference(first if first == second else "tie", first, second)


def outcome_of(choice: str, order: str) -> str:
    """``choice`` (A, B or tie) as the judged answer's outcome where it stood at ``order``."""
    if choice == "tie":
        return "tie"
    return "win" if (choice == "A") == (order == "first") else "loss"


def same_text(answer: str, baseline: Any) -> bool:
    return isinstance(baseline, str) and answer.split() == baseline.split()


def _agreed(outcomes: Sequence[str], checks: Sequence[Check], params: Mapping[str, Any]) -> Verdict:
    aggregate = params.get("aggregate", "unanimous")
    mean = sum(SCORES[outcome] for outcome in outcomes) / len(outcomes)
    if aggregate == "mean":
        outcome = "win" if mean > 0.5 else "tie" if mean == 0.5 else "loss"
        return _verdict(outcome, mean, checks, params)
    leading = max(SCORES, key=outcomes.count)
    count = outcomes.count(leading)
    if aggregate == "unanimous" and count < len(outcomes):
        return unscored("The judges disagree which answer is better.", checks=checks)
    if 2 * count <= len(outcomes):
        return unscored("No outcome has more than half of the judges.", checks=checks)
    return _verdict(leading, SCORES[leading], checks, params)


def _verdict(outcome: str, score: float, checks: Sequence[Check], params: Mapping[str, Any]) -> Verdict:
    if outcome in params.get("passing_outcomes", ["win"]):
        return Verdict(state="passed", score=score, checks=tuple(checks))
    word = "a tie with" if outcome == "tie" else "worse than" if outcome == "loss" else "better than"
    return failed(f"The answer is {word} the baseline.", score=score, checks=checks)


def _words(said: Preference) -> str:
    if said.contradicts:
        return "It preferred the same place in both orders: a tie."
    if said.first != said.second:
        return f"A {said.first} in first place, a {said.second} in second: a tie."
    return f"A {said.outcome} in both orders."


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_panel("pairwise", params)


KIND = VerifierKind(
    name="pairwise",
    title="Pairwise comparison by judge models",
    description=(
        "Judge models compare the answer with the baseline answer in the reference, in both orders; "
        "disagreement between the orders is a tie. Win, tie and loss score 1, 0.5 and 0."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            **PANEL_SCHEMA,
            "aggregate": {"enum": list(AGGREGATES)},
            "passing_outcomes": {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"enum": ["win", "tie"]},
            },
        },
        "required": ["criteria"],
        "additionalProperties": False,
    },
    reference_schema={"type": "string", "pattern": r"\S"},
    check=_check,
)
