"""The answer is a test file: it must pass on the right program and fail on each of its mutants.

The tests run in one sandbox and the program in another, so that tests can tell programs apart by what
they do, and by nothing else. The report under ``mutants``: ``{"status", "runs": [{"program": "right" |
"mutant N", "verdict": "passed" | "failed" | "broken", "tests", "reason"}], "detail"}``. What a test
process says is not trusted either: without telling right from wrong it cannot answer right.
"""

from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, unscored
from domain.verifiers.python_tests import answer_source
from domain.verifiers.repository import FILES

EVIDENCE = "mutants"
PATH = "tests/test_answer.py"
RIGHT_RUNS = 2


def suite_files(answer: str) -> dict[str, str]:
    """The answer's one code fence, or the whole of it, as a test file."""
    return {PATH: answer_source(answer)}


def programs(task: TaskSpec) -> list[tuple[str, dict[str, str]]]:
    """What the tests run against: the right program more than once, then each mutant."""
    reference = task.reference
    right = [("right", reference["program"])] * RIGHT_RUNS
    return right + [
        (f"mutant {number}", {**reference["program"], **changed})
        for number, changed in enumerate(reference["mutants"], start=1)
    ]


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The tests were not run: no evidence from a sandbox.")
    status = str(report.get("status", ""))
    if status != "ok":
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        detail = str(report.get("detail", ""))[:200]
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail}".rstrip())
    runs, wanted = report.get("runs"), programs(task)
    if not isinstance(runs, list) or [run.get("program") for run in runs] != [name for name, _ in wanted]:
        return failed("Not every program was tested.")
    checks = [_run_check(run) for run in runs]
    right, killed = checks[:RIGHT_RUNS], checks[RIGHT_RUNS:]
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    sound = all(check.score == 1.0 for check in right)
    share = sum(check.score or 0.0 for check in killed) / len(killed) if sound else 0.0
    return failed(*dict.fromkeys(reasons), score=share, checks=checks)


def _run_check(run: Mapping[str, Any]) -> Check:
    program, said = str(run.get("program")), run.get("verdict")
    wanted = "passed" if program == "right" else "failed"
    if said == wanted:
        return Check(name=program, score=1.0)
    reason = str(run.get("reason", ""))[:200]
    if said == "broken":
        text = f"The tests did not run to their end on the {program} program: {reason}"
    elif program == "right":
        text = f"The tests fail on the right program: {reason}"
    else:
        text = f"The tests do not notice {program}"
    return Check(name=program, score=0.0, reason=f"{text.removesuffix(': ')}.")


KIND = VerifierKind(
    name=EVIDENCE,
    title="Tests that notice mutants",
    description=(
        "The answer is a test file. It must pass on the right program and fail on every mutant; tests and "
        "program run in sandboxes of their own."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={"type": "object", "properties": {}, "additionalProperties": False},
    reference_schema={
        "type": "object",
        "properties": {
            "program": {**FILES, "minProperties": 1},
            "mutants": {"type": "array", "minItems": 1, "maxItems": 20, "items": FILES},
        },
        "required": ["program", "mutants"],
        "additionalProperties": False,
    },
)
