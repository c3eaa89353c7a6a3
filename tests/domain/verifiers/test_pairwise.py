import json
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

ANSWER = "The shop opens at nine on Sundays."
BASELINE = "It opens in the morning, I think."
CRITERIA: dict[str, Any] = {
    "criteria": ["It says when the shop opens."],
    "prompts": ["rubric"],
    "min_verdicts": 1,
}
PANEL: dict[str, Any] = {"criteria": CRITERIA["criteria"], "prompts": ["rubric"], "models": ["a", "b", "c"]}


def heard(*pairs: tuple[str, str], models: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """What each model chooses with the answer in first place, and with it in second place."""
    judgements = []
    for index, pair in enumerate(pairs):
        for order, better in zip(("first", "second"), pair, strict=True):
            reply = better if better.startswith("{") else json.dumps({"better": better})
            model = models[index % len(models)]
            judgements.append({"prompt": "rubric", "model": model, "order": order, "reply": reply})
    return {"judgements": {"status": "ok", "judgements": judgements}}


@pytest.mark.parametrize(
    ("pair", "state", "score"),
    [
        (("A", "B"), "passed", 1.0),
        (("B", "A"), "failed", 0.0),
        (("A", "A"), "failed", 0.5),
        (("B", "B"), "failed", 0.5),
        (("tie", "tie"), "failed", 0.5),
        (("A", "tie"), "failed", 0.5),
    ],
)
def test_both_orders_together_are_a_win_a_tie_or_a_loss(
    judge: Any, pair: tuple[str, str], state: str, score: float
) -> None:
    verdict = judge("pairwise", BASELINE, ANSWER, heard(pair), **CRITERIA)

    assert (verdict.state, verdict.score) == (state, score)


def test_a_judge_of_places_is_called_one(judge: Any) -> None:
    verdict = judge("pairwise", BASELINE, ANSWER, heard(("A", "A")), **CRITERIA)

    assert verdict.checks[0].reason == "It preferred the same place in both orders: a tie."


def test_the_parameters_say_whether_a_tie_passes(judge: Any) -> None:
    lenient = {**CRITERIA, "passing_outcomes": ["win", "tie"]}

    assert judge("pairwise", BASELINE, ANSWER, heard(("A", "A")), **lenient).state == "passed"
    assert judge("pairwise", BASELINE, ANSWER, heard(("B", "A")), **lenient).state == "failed"


def test_one_order_alone_decides_nothing(judge: Any) -> None:
    once = heard(("A", "B"))
    once["judgements"]["judgements"].pop()

    assert judge("pairwise", BASELINE, ANSWER, once, **CRITERIA).state == "unscored"
    assert judge("pairwise", BASELINE, ANSWER, heard(("A", "{}")), **CRITERIA).state == "unscored"


def test_a_panel_that_is_not_unanimous_abstains_unless_a_majority_is_asked(judge: Any) -> None:
    split = heard(("A", "B"), ("A", "B"), ("B", "A"), models=("a", "b", "c"))

    assert judge("pairwise", BASELINE, ANSWER, split, **PANEL).state == "unscored"
    assert judge("pairwise", BASELINE, ANSWER, split, **PANEL, aggregate="majority").score == 1.0
    mean = judge("pairwise", BASELINE, ANSWER, split, **PANEL, aggregate="mean")
    assert (mean.state, mean.score) == ("passed", pytest.approx(2 / 3))


def test_three_outcomes_of_three_judges_have_no_majority(judge: Any) -> None:
    spread = heard(("A", "B"), ("tie", "tie"), ("B", "A"), models=("a", "b", "c"))

    assert judge("pairwise", BASELINE, ANSWER, spread, **PANEL, aggregate="majority").state == "unscored"
    assert judge("pairwise", BASELINE, ANSWER, spread, **PANEL, aggregate="mean").score == 0.5


def test_the_baseline_itself_is_a_tie_without_asking(judge: Any) -> None:
    verdict = judge("pairwise", BASELINE, f" {BASELINE}\n", {}, **CRITERIA)

    assert (verdict.state, verdict.score) == ("failed", 0.5)


def test_21_a_master_key_loses_before_any_judge_is_heard(judge: Any) -> None:
    assert judge("pairwise", BASELINE, "Solution:", heard(("A", "B")), **CRITERIA).score == 0.0


@pytest.mark.parametrize("reference", [None, "", "  ", 3])
def test_a_comparison_needs_a_baseline(reference: Any) -> None:
    with pytest.raises(InvalidVerifier, match="reference"):
        check_spec(VerifierSpec(kind="pairwise", params=CRITERIA), reference)
