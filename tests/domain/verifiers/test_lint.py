"""Verdicts about style, from a linter's findings; and what is refused before any linter looks."""

from typing import Any

import pytest

from domain.verifiers import InvalidVerifier, check_spec
from domain.verifiers.lint import silencing_comments

CODE = "def f(x):\n    return x\n"
FINDING = {"code": "E711", "row": 2, "message": "Comparison to None"}


def report(*findings: Any, status: str = "ok") -> dict[str, Any]:
    return {"lint": {"status": status, "findings": list(findings), "detail": ""}}


def run(judge: Any, answer: str, evidence: Any, reference: Any = None) -> Any:
    return judge("lint", reference, answer, evidence, select=["E711"])


def test_no_finding_passes_and_a_finding_fails_with_its_line(judge: Any) -> None:
    assert run(judge, CODE, report()).state == "passed"
    verdict = run(judge, CODE, report(FINDING))

    assert verdict.state == "failed"
    assert verdict.reasons == ("Line 2: E711: Comparison to None.",)


def test_credit_is_the_share_of_planted_findings_that_are_gone(judge: Any) -> None:
    reference = {"findings": 4}

    assert run(judge, CODE, report(FINDING), reference).score == 0.75
    assert run(judge, CODE, report(*[FINDING] * 4), reference).score == 0.0
    assert run(judge, CODE, report(*[FINDING] * 9), reference).score == 0.0
    assert run(judge, CODE, report(FINDING)).score == 0.0


@pytest.mark.parametrize(
    "answer", ["", "# nothing", "pass", '"""Doc."""', "...", "def f(:", "It is fine now."]
)
def test_row_19_a_text_without_a_program_fails_without_a_linter(judge: Any, answer: str) -> None:
    verdict = run(judge, answer, report())

    assert verdict.state == "failed"
    assert verdict.score == 0.0


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# NOQA: E711",
        "#noqa:E711",
        "# ruff: noqa",
        "# flake8: noqa",
        "# type: ignore",
        "# type:ignore[attr]",
        "# pyright: ignore",
        "# pylint: disable=all",
        "# isort: skip_file",
        "# fmt: off",
        "# ruff: disable[E711]",
        "# why not  # noqa",
        "# nosec",
        "# mypy: ignore-errors",
    ],
)
def test_comments_that_silence_are_refused(judge: Any, comment: str) -> None:
    assert silencing_comments(f"x = 1  {comment}\n")
    assert run(judge, f"{CODE}\nx = 1  {comment}\n", report()).state == "failed"


@pytest.mark.parametrize(
    "line", ["x = '# noqa'", "# a note about types", "# ignore the rest", "# the format: json"]
)
def test_strings_and_ordinary_comments_are_free(judge: Any, line: str) -> None:
    assert silencing_comments(f"{line}\n") == []
    assert run(judge, f"{CODE}{line}\n", report()).state == "passed"


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"lint": None},
        report(status="infra_error"),
        report(status="unavailable"),
        {"lint": {"status": "ok"}},
    ],
)
def test_without_a_report_nothing_is_decided(judge: Any, evidence: Any) -> None:
    assert run(judge, CODE, evidence).state == "unscored"


def test_a_linter_that_the_answer_brought_down_is_a_failure(judge: Any) -> None:
    assert run(judge, CODE, report(status="timeout")).state == "failed"


@pytest.mark.parametrize(
    "params",
    [
        {"select": []},
        {"select": ["--fix"]},
        {"select": ["E711 --config x"]},
        {"select": ["E"], "settings": {"lint.per-file-ignores": {}}},
        {"select": ["E"], "settings": {"lint.mccabe.max-complexity": "9\nlint.ignore=['E']"}},
        {"select": ["E"], "ignore": ["E711"]},
    ],
)
def test_parameters_cannot_carry_options_of_the_tool(task: Any, params: dict[str, Any]) -> None:
    unsound = task("lint", None, **params)

    with pytest.raises(InvalidVerifier):
        check_spec(unsound.verifier, unsound.reference)


def test_style_counts_only_behind_the_gate_of_behaviour(judge: Any) -> None:
    calls = {"calls": [{"args": [1], "expected": 1}]}
    first = {"kind": "python_tests", "params": {"entry_point": "f"}, "reference": calls}
    then = {"kind": "lint", "params": {"select": ["E711"]}}
    wrong = {"python_calls": {"status": "ok", "calls": [{"status": "ok", "value": 2}]}}

    assert judge("gate", None, CODE, wrong | report(), first=first, then=then).score == 0.0


def test_a_clean_program_around_a_hidden_one_fails_where_plain_programs_are_asked_for(judge: Any) -> None:
    answer = "exec(bytes.fromhex('783d31'))\n"
    evidence = {"lint": {"status": "ok", "findings": [], "detail": ""}}

    assert judge("lint", None, answer, evidence, select=["E7"]).state == "passed"
    verdict = judge("lint", None, answer, evidence, select=["E7"], plain=True)

    assert verdict.state == "failed"
    assert "exec (line 1)" in verdict.reasons[0]


def test_other_annotations_than_those_asked_for_fail_though_the_linter_finds_nothing(judge: Any) -> None:
    types = {"function": "f", "annotations": {"x": "int", "return": "int"}}
    clean = {"lint": {"status": "ok", "findings": [], "detail": ""}}

    right = judge("lint", None, "def f(x: int) -> int:\n    return x\n", clean, select=["ANN"], types=types)
    lazy = judge(
        "lint", None, "def f(x: object) -> object:\n    return x\n", clean, select=["ANN"], types=types
    )

    assert right.state == "passed"
    assert (lazy.state, lazy.score) == ("failed", 0.0)
    assert lazy.reasons == ("The argument x of f is annotated object, not int.",)
