from typing import Any

import pytest

from domain import typed_json
from domain.verifiers.python_tests import answer_source, sandbox_calls

REFERENCE = {
    "calls": [
        {"args": [2], "kwargs": {}, "expected": 4},
        {"args": [[1, 2]], "expected": {"t": "tuple", "v": [1, 2]}},
    ]
}


def report(*values: Any, status: str = "ok", **more: Any) -> dict[str, Any]:
    calls = [{"status": "ok", "value": typed_json.encode(value), "error": ""} for value in values]
    return {"python_calls": {"status": status, "calls": calls, "detail": ""} | more}


def run(judge: Any, evidence: Any, reference: Any = REFERENCE) -> Any:
    return judge("python_tests", reference, "def f(x): ...", evidence, entry_point="f")


def test_all_values_right_passes(judge: Any) -> None:
    verdict = run(judge, report(4, (1, 2)))

    assert verdict.state == "passed"
    assert [check.name for check in verdict.checks] == ["finished", "call 1", "call 2"]


@pytest.mark.parametrize("wrong", [5, True, "4", [4], None])
def test_a_wrong_value_or_type_fails_and_the_call_is_named(judge: Any, wrong: Any) -> None:
    verdict = run(judge, report(wrong, (1, 2)))

    assert verdict.state == "failed"
    assert verdict.score == 0.5
    assert verdict.reasons[0].startswith("Call 1 returned")


def test_a_list_is_not_a_tuple_and_true_is_not_one(judge: Any) -> None:
    assert run(judge, report(4, [1, 2])).state == "failed"
    assert run(judge, report(True), {"calls": [{"args": [], "expected": 1}]}).state == "failed"
    assert run(judge, report(1), {"calls": [{"args": [], "expected": True}]}).state == "failed"


def test_a_float_is_no_integer_unless_a_tolerance_is_given(judge: Any) -> None:
    def state(value: Any, expected: Any, **params: Any) -> str:
        reference = {"calls": [{"args": [], "expected": typed_json.encode(expected)}]}
        return judge("python_tests", reference, "", report(value), entry_point="f", **params).state

    assert state(3.0, 3) == "failed"
    assert state(3, 3.0) == "failed"
    assert state({"a": [1.0]}, {"a": [1]}) == "failed"
    assert state({1.0: 2}, {1: 2}) == "failed"
    assert state({1.0}, {1}) == "failed"
    assert state(3.0, 3, relative=1e-6) == "passed"
    assert state(3.0, 3, numbers="value") == "passed"
    assert state(3.0, 3, relative=1e-6, numbers="exact") == "failed"
    assert state(3.1, 3, numbers="value") == "failed"


def test_rounding_of_floats_is_tolerated(judge: Any) -> None:
    assert run(judge, report(0.1 + 0.2), {"calls": [{"args": [], "expected": 0.3}]}).state == "passed"


@pytest.mark.parametrize("values", [(), (4,), (4, (1, 2), 4)])
def test_the_number_of_results_must_match_exactly(judge: Any, values: Any) -> None:
    verdict = run(judge, report(*values))

    assert verdict.state == "failed"
    assert verdict.score == 0.0


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"python_calls": None},
        {"python_calls": "ok"},
        {"python_calls": {}},
        report(4, (1, 2), status="infra_error"),
        report(4, (1, 2), status="unavailable"),
        report(4, (1, 2), status="something new"),
    ],
)
def test_without_the_sandbox_s_word_nothing_is_decided(judge: Any, evidence: Any) -> None:
    verdict = run(judge, evidence)

    assert verdict.state == "unscored"
    assert verdict.score is None
    assert verdict.reasons


@pytest.mark.parametrize("status", ["timeout", "oom", "nonzero", "signal", "cpu", "output_limit"])
@pytest.mark.parametrize("values", [(), (4, (1, 2))])
def test_a_program_that_died_after_its_start_has_failed(judge: Any, status: str, values: Any) -> None:
    verdict = run(judge, report(*values, status=status))

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_an_exception_and_a_missing_result_fail_by_call(judge: Any) -> None:
    calls = [{"status": "error", "error": "ValueError: no"}, {"status": "missing"}]

    verdict = run(judge, {"python_calls": {"status": "ok", "calls": calls}})

    assert verdict.reasons == ("Call 1 raised 'ValueError: no'.", "Call 2 brought back no result.")


@pytest.mark.parametrize(
    "forged",
    [
        "passed",
        {},
        {"status": "ok"},
        {"status": "passed", "value": 4},
        {"status": "ok", "value": {"t": "set", "v": [[]]}},
        {"status": ["ok"], "value": 4},
        {"status": "ok", "value": {"t": "int", "v": "f" * 50_000}},
    ],
)
def test_forged_results_are_data_and_fail(judge: Any, forged: Any) -> None:
    calls = [forged, {"status": "ok", "value": {"t": "tuple", "v": [1, 2]}}]

    assert run(judge, {"python_calls": {"status": "ok", "calls": calls}}).state == "failed"


def test_expected_values_never_reach_the_sandbox(task: Any) -> None:
    sent = sandbox_calls(task("python_tests", REFERENCE, entry_point="f"))

    assert sent == {
        "entry_point": "f",
        "calls": [{"args": [2], "kwargs": {}}, {"args": [[1, 2]], "kwargs": {}}],
    }


def test_the_program_is_the_one_fence_or_the_whole_answer() -> None:
    assert answer_source("Sure:\n```python\nx = 1\n```\nDone") == "x = 1\n"
    assert answer_source("x = 1") == "x = 1"
    assert answer_source("```\na\n```\n```\nb\n```").startswith("```")
