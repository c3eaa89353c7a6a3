"""A person's grading function: what its result decides, and what decides nothing."""

from typing import Any

import pytest

from domain import typed_json
from domain.verifiers.grader_python import grader_call

SOURCE = "def grade(sample, item):\n    return 1.0\n"


def graded(judge: Any, result: Any, **params: Any) -> Any:
    report = {"grader_python": {"status": "ok", "result": result}}
    return judge("grader_python", None, "x", report, source=SOURCE, **params)


@pytest.mark.parametrize(
    ("result", "state", "score"),
    [
        (1.0, "passed", 1.0),
        (0.5, "passed", 0.5),
        (0.49, "failed", 0.49),
        (0, "failed", 0.0),
        (True, "passed", 1.0),
        (False, "failed", 0.0),
    ],
)
def test_a_grade_from_zero_to_one_decides_by_the_threshold(
    judge: Any, result: Any, state: str, score: float
) -> None:
    verdict = graded(judge, result)

    assert (verdict.state, verdict.score) == (state, score)


def test_the_threshold_is_a_parameter(judge: Any) -> None:
    assert graded(judge, 0.8, pass_threshold=0.9).state == "failed"
    assert graded(judge, 0.9, pass_threshold=0.9).state == "passed"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "no grade"),
        (float("inf"), "no grade"),
        (1.01, "outside 0 to 1"),
        (-0.1, "outside 0 to 1"),
        (10**4000, "outside 0 to 1"),
        ("1.0", "no number"),
        (None, "returned nothing"),
        ([1.0], "no number"),
        (1 + 0j, "no number"),
    ],
)
def test_what_is_no_grade_decides_nothing_and_says_why(judge: Any, value: Any, words: str) -> None:
    verdict = graded(judge, typed_json.encode(value))

    assert (verdict.state, verdict.score) == ("unscored", None)
    assert words in verdict.reasons[0]


@pytest.mark.parametrize("result", [{"t": "set", "v": 1}, {"t": "?"}, {"t": "float", "v": "x"}])
def test_a_result_that_is_no_typed_json_decides_nothing(judge: Any, result: Any) -> None:
    assert graded(judge, result).state == "unscored"


def test_a_grader_that_fails_or_does_not_end_decides_nothing(judge: Any) -> None:
    for report, words in (
        ({"status": "ok", "error": "ValueError: no (line 2)"}, "ValueError: no (line 2)"),
        ({"status": "timeout"}, "in time"),
        ({"status": "oom"}, "memory"),
        ({"status": "infra_error", "detail": "lost"}, "broke down. lost"),
        ({"status": "new"}, "Unknown sandbox status"),
    ):
        verdict = judge("grader_python", None, "x", {"grader_python": report}, source=SOURCE)
        assert verdict.state == "unscored"
        assert words in verdict.reasons[0]


def test_what_a_grader_says_can_be_stored_whatever_it_quotes(judge: Any) -> None:
    report = {"grader_python": {"status": "ok", "error": "ValueError: \0 \ud800"}}

    verdict = judge("grader_python", None, "x", report, source=SOURCE)

    assert verdict.reasons == ("The grader failed: ValueError: \N{REPLACEMENT CHARACTER} ?",)


def test_without_a_sandbox_nothing_is_decided(judge: Any) -> None:
    assert judge("grader_python", None, "x", source=SOURCE).state == "unscored"


def test_an_endless_answer_fails_without_a_sandbox(judge: Any) -> None:
    assert judge("grader_python", None, "x" * 1_000_001, source=SOURCE).state == "failed"


def test_the_function_sees_the_answer_the_item_and_the_reference(task: Any) -> None:
    spec = task("grader_python", "42", source=SOURCE, item={"unit": "EUR"})

    call = grader_call(spec, '{"total": 42}')

    assert typed_json.decode(call["item"]) == {"unit": "EUR", "reference": "42"}
    sample = typed_json.decode(call["sample"])
    assert (sample["output_text"], sample["output_json"]) == ('{"total": 42}', {"total": 42})
    assert sample["choices"] == [{"message": {"role": "assistant", "content": '{"total": 42}'}}]


@pytest.mark.parametrize("answer", ["NaN", "[" * 100_000, "9" * 5000, "no JSON", '{"a": Infinity}'])
def test_what_is_no_json_gives_none(task: Any, answer: str) -> None:
    call = grader_call(task("grader_python", None, source=SOURCE), answer)

    assert typed_json.decode(call["sample"])["output_json"] is None


def test_an_item_s_own_reference_is_kept(task: Any) -> None:
    spec = task("grader_python", "42", source=SOURCE, item={"reference": "43"})

    assert typed_json.decode(grader_call(spec, "x")["item"]) == {"reference": "43"}
