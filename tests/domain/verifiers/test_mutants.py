"""Verdicts about tests, from how they judged a right program and its mutants."""

from typing import Any

import pytest

REFERENCE = {"program": {"a.py": "x = 1"}, "mutants": [{"a.py": "x = 2"}, {"a.py": "x = 3"}]}


def report(*verdicts: str, status: str = "ok") -> dict[str, Any]:
    names = ("right", "right", "mutant 1", "mutant 2")
    runs = [
        {"program": n, "verdict": v, "tests": 1, "reason": ""} for n, v in zip(names, verdicts, strict=False)
    ]
    return {"mutants": {"status": status, "runs": runs, "detail": ""}}


def run(judge: Any, evidence: Any) -> Any:
    return judge("mutants", REFERENCE, "def test(): ...", evidence)


def test_right_passes_and_every_mutant_fails(judge: Any) -> None:
    assert run(judge, report("passed", "passed", "failed", "failed")).state == "passed"


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        (("passed", "passed", "failed", "passed"), 0.5),
        (("passed", "passed", "broken", "failed"), 0.5),
        (("passed", "passed", "passed", "passed"), 0.0),
        (("failed", "failed", "failed", "failed"), 0.0),
        (("passed", "failed", "failed", "failed"), 0.0),
        (("broken", "broken", "broken", "broken"), 0.0),
    ],
)
def test_credit_is_the_share_of_noticed_mutants_once_the_right_program_passes(
    judge: Any, verdicts: tuple[str, ...], score: float
) -> None:
    verdict = run(judge, report(*verdicts))

    assert verdict.state == "failed"
    assert verdict.score == score
    assert verdict.reasons


def test_a_run_left_out_fails(judge: Any) -> None:
    assert run(judge, report("passed", "passed", "failed")).state == "failed"


@pytest.mark.parametrize(
    "evidence", [{}, {"mutants": None}, report(status="infra_error"), report(status="timeout")]
)
def test_without_the_sandbox_s_word_nothing_is_decided(judge: Any, evidence: Any) -> None:
    assert run(judge, evidence).state == "unscored"
