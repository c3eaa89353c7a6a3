"""The knowledge pack: everything decided by rules, and the ways around them closed."""

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import needs, verify
from packs.knowledge import PACK
from tests.packs.seeded_checks import assert_answers_are_judged_right, assert_tasks_are_sound

NAMES = [family.name for family in PACK.families]


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=20)


@pytest.mark.parametrize("family", NAMES)
def test_gold_passes_and_nothing_and_every_mistake_fail(family: str) -> None:
    assert_answers_are_judged_right(PACK, family, count=20)


def test_no_family_needs_evidence() -> None:
    for family in NAMES:
        for task in PACK.generate(family, seed=1, count=5):
            assert needs(task.verifier) == frozenset()


def test_a_missing_fact_is_named_with_its_source() -> None:
    (task,) = PACK.generate("minutes_summary", seed=3, count=1)
    gold = str(PACK.gold_answer(task))

    verdict = verify(task, "\n".join(line for line in gold.split("\n") if not line.startswith("- ")), {})

    assert verdict.state == "failed"
    assert any("Source: " in reason for reason in verdict.reasons)


def test_a_panel_of_judges_can_follow_the_rules() -> None:
    (task,) = PACK.generate("mail_draft", seed=3, count=1)
    rules = {"kind": "rules", "params": task.verifier.params, "reference": task.reference}
    panel = {"kind": "judge", "params": {"criteria": ["The tone is friendly."]}}
    judged = task.model_copy(
        update={
            "verifier": VerifierSpec(kind="gate", params={"first": rules, "then": panel}),
            "reference": None,
        }
    )
    said = [
        {"prompt": prompt, "model": "", "reply": 'Fine.\n{"score": 0.9, "pass": true}'}
        for prompt in ("rubric", "defects")
    ]
    evidence = {"judgements": {"status": "ok", "judgements": said}}

    assert verify(judged, str(PACK.gold_answer(task)), evidence).state == "passed"
    assert verify(judged, str(PACK.gold_answer(task)), {}).state == "unscored"
    assert verify(judged, str(PACK.bad_answers(task)["promise"]), evidence).state == "failed"
