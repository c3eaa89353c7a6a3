from typing import Any

import pytest

YES: dict[str, Any] = {"kind": "exact", "reference": "a"}
NO: dict[str, Any] = {"kind": "exact", "reference": "b"}
UNDECIDED: dict[str, Any] = {
    "kind": "python_tests",
    "params": {"entry_point": "f"},
    "reference": {"calls": [{"expected": 1}]},
}
HALF: dict[str, Any] = {
    "kind": "json_fields",
    "params": {"fields": {"x": "number", "y": "number"}},
    "reference": {"x": 1, "y": 2},
}


@pytest.mark.parametrize(
    ("kind", "parts", "state"),
    [
        ("all", [YES, YES], "passed"),
        ("all", [YES, NO], "failed"),
        ("all", [YES, UNDECIDED], "unscored"),
        ("all", [NO, UNDECIDED], "failed"),
        ("any", [NO, YES], "passed"),
        ("any", [NO, NO], "failed"),
        ("any", [NO, UNDECIDED], "unscored"),
        ("any", [YES, UNDECIDED], "passed"),
        ("weighted", [YES, YES], "passed"),
        ("weighted", [YES, NO], "failed"),
        ("weighted", [YES, UNDECIDED], "unscored"),
    ],
)
def test_states_combine_without_turning_the_unknown_into_a_pass_or_a_zero(
    judge: Any, kind: str, parts: Any, state: str
) -> None:
    verdict = judge(kind, None, "a", parts=parts)

    assert verdict.state == state
    assert (verdict.score is None) == (state == "unscored")


def test_weighted_passes_at_its_threshold(judge: Any) -> None:
    parts = [YES | {"weight": 3}, NO | {"weight": 1}]

    assert judge("weighted", None, "a", parts=parts, threshold=0.75).score == 0.75
    assert judge("weighted", None, "a", parts=parts, threshold=0.75).state == "passed"
    assert judge("weighted", None, "a", parts=parts, threshold=0.76).state == "failed"


@pytest.mark.parametrize(
    ("first", "then", "state"),
    [
        (YES, YES, "passed"),
        (YES, NO, "failed"),
        (NO, YES, "failed"),
        (UNDECIDED, YES, "unscored"),
        (YES, UNDECIDED, "unscored"),
    ],
)
def test_a_gate_counts_its_second_part_only_after_the_first_passed(
    judge: Any, first: Any, then: Any, state: str
) -> None:
    assert judge("gate", None, "a", first=first, then=then).state == state


@pytest.mark.parametrize(
    ("part", "state", "score"), [(YES, "failed", 0.0), (NO, "passed", 1.0), (UNDECIDED, "unscored", None)]
)
def test_not_turns_a_decision_around_and_leaves_the_undecided_undecided(
    judge: Any, part: Any, state: str, score: Any
) -> None:
    verdict = judge("not", None, "a", part=part)

    assert (verdict.state, verdict.score) == (state, score)
    assert state != "failed" or "must not" in verdict.reasons[0]


def test_not_of_not_is_the_part(judge: Any) -> None:
    for part, state in ((YES, "passed"), (NO, "failed"), (UNDECIDED, "unscored")):
        twice = {"kind": "not", "params": {"part": part}}
        assert judge("not", None, "a", part=twice).state == state


def test_not_uses_the_task_s_reference_where_its_part_has_none(judge: Any) -> None:
    assert judge("not", "a", "a", part={"kind": "exact"}).state == "failed"


def test_a_half_right_answer_earns_nothing_before_the_gate(judge: Any) -> None:
    answer = '{"x": 1, "y": 3}'

    assert judge("all", None, answer, parts=[HALF]).score == 0.5
    assert judge("gate", None, answer, first=HALF, then=HALF).score == 0.0


def test_parts_without_a_reference_use_the_task_s(judge: Any) -> None:
    assert judge("all", "a", "a", parts=[{"kind": "exact"}]).state == "passed"


def test_nesting_without_end_decides_nothing(judge: Any) -> None:
    part = YES
    for _ in range(200):
        part = {"kind": "all", "params": {"parts": [part]}}

    assert judge("all", None, "a", parts=[part]).state == "unscored"
