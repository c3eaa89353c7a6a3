import json
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

PARAMS = {
    "criteria": ["How the reply treats the customer."],
    "labels": ["helpful", "evasive", "rude"],
    "passing_labels": ["helpful"],
    "models": ["small", "large"],
    "prompts": ["rubric"],
}
ANSWER = "We refund you today."


def heard(*labels: str, models: tuple[str, ...] = ("small", "large")) -> dict[str, Any]:
    judgements = [
        {
            "prompt": "rubric",
            "model": models[index % len(models)],
            "reply": label if label.startswith("{") else "So.\n" + json.dumps({"label": label}),
        }
        for index, label in enumerate(labels)
    ]
    return {"judgements": {"status": "ok", "judgements": judgements}}


def test_a_passing_label_passes_and_another_one_fails(judge: Any) -> None:
    good = judge("label", None, ANSWER, heard("helpful", "HELPFUL"), **PARAMS)
    bad = judge("label", None, ANSWER, heard("rude", "evasive"), **PARAMS)

    assert (good.state, good.score) == ("passed", 1.0)
    assert (bad.state, bad.score) == ("failed", 0.0)
    assert "'rude' and 'evasive'" in bad.reasons[0]


def test_labels_on_different_sides_decide_nothing(judge: Any) -> None:
    verdict = judge("label", None, ANSWER, heard("helpful", "rude"), **PARAMS)

    assert verdict.state == "unscored"
    assert "disagree" in verdict.reasons[0]


@pytest.mark.parametrize(
    "reply", ["{}", '{"label": null}', '{"label": "neutral"}', '{"score": 1, "pass": true}']
)
def test_a_malformed_label_is_unscored_never_a_pass(judge: Any, reply: str) -> None:
    assert judge("label", None, ANSWER, heard("helpful", reply), **PARAMS).state == "unscored"


def test_a_voice_that_changes_its_label_abstains(judge: Any) -> None:
    params = {**PARAMS, "models": ["small"], "repeats": 2}

    assert (
        judge("label", None, ANSWER, heard("rude", "evasive", models=("small",)), **params).state
        == "unscored"
    )
    assert judge("label", None, ANSWER, heard("rude", "rude", models=("small",)), **params).state == "failed"


def test_one_lost_repeat_is_not_a_settled_label(judge: Any) -> None:
    params = {**PARAMS, "models": ["small"], "repeats": 2}

    assert judge("label", None, ANSWER, heard("helpful", models=("small",)), **params).state == "unscored"


@pytest.mark.parametrize("answer", ["", "…", "Thought process:"])
def test_21_a_master_key_fails_before_any_judge_is_heard(judge: Any, answer: str) -> None:
    assert judge("label", None, answer, heard("helpful", "helpful"), **PARAMS).state == "failed"


def test_a_short_answer_may_be_labelled(judge: Any) -> None:
    assert judge("label", None, "No.", heard("helpful", "helpful"), **PARAMS).state == "passed"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"passing_labels": ["kind"]}, "none of the labels"),
        ({"labels": ["helpful", "Helpful "]}, "differ by case"),
        ({"passing_labels": ["helpful", "evasive", "rude"]}, "no answer could fail"),
        ({"labels": ["helpful"]}, "labels"),
        ({"passing_labels": []}, "passing_labels"),
        ({"min_verdicts": 3}, "voices"),
    ],
)
def test_labels_that_decide_nothing_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="label", params={**PARAMS, **change}), None)


def test_the_models_may_be_left_to_the_project() -> None:
    short = {name: PARAMS[name] for name in ("criteria", "labels", "passing_labels")}

    check_spec(VerifierSpec(kind="label", params=short), None)
