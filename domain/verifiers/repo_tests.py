"""The answer is a changed repository; hidden tests judge it in fresh sandboxes.

Tests are ordinary files with ``test_…`` functions (or ``unittest`` cases) that import the solution.
``apart``, the default, runs them in one sandbox and the solution in another: an import gives stand-ins,
calls cross as typed JSON. ``inside`` shares a process, for tests that cannot be told apart from the
solution; then the solution's sources are searched for what a program needs to get at its judge, and
tests that must fail are mixed in.

The report under ``repo_tests``: ``{"status", "tests": [{"id", "status", "reason"}], "extra": [ids],
"meddling": [paths], "controls": "" | what went wrong, "suspicious": [...], "detail"}``. ``status`` is
the host's word.
"""

from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, unscored
from domain.verifiers.python_tests import DIED
from domain.verifiers.repository import (
    FILES,
    PARAMS,
    Graded,
    files_in_text,
    graded_files,
    roots,
    said,
)
from domain.verifiers.strict_json import NotStrictJson

EVIDENCE = "repo_tests"


def graded(task: TaskSpec, answer: str, workspace: Mapping[str, Any] | None) -> Graded:
    """What is graded: the files of the environment's ``workspace``, or those in the answer's text."""
    reference, params = task.reference, task.verifier.params
    pristine: dict[str, str] = reference["files"]
    protected: dict[str, str] = reference.get("shown", {})
    if workspace is not None:
        if workspace.get("status", "ok") != "ok":
            return Graded(dict(pristine), trouble="The workspace did not survive.")
        changed = {str(path): str(text) for path, text in workspace.get("files", {}).items()}
        return graded_files(pristine, protected, changed, params["sources"])
    if not answer.strip():
        return Graded(dict(pristine), trouble="The answer is empty.")
    try:
        changed = files_in_text(answer, params.get("path", ""))
    except NotStrictJson as error:
        return Graded(dict(pristine), trouble=str(error))
    return graded_files(pristine, protected, {**pristine, **protected, **changed}, params["sources"])


def importable(task: TaskSpec, files: Mapping[str, str]) -> tuple[str, ...]:
    """Top-level names of the solution that its tests may import."""
    return tuple(name for name in roots(files) if name not in ("tests", "checks", "run_tests"))


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The tests were not run: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))[:200]
    if status != "ok" and status not in DIED:
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail}".rstrip())

    guards = _guards(report, status, detail)
    checks = [_test_check(name, _results(report).get(name)) for name in task.reference["ids"]]
    stopped = [check.reason for check in guards if check.score == 0.0 and check.name != "tests untouched"]
    reasons = [*stopped, *(check.reason for check in checks if check.reason)]
    if not reasons:
        return passed([*guards, *checks])
    share = 0.0 if stopped else _share(task.reference, {check.name: check.score for check in checks})
    return failed(*reasons, score=share, checks=[*guards, *checks])


def _guards(report: Mapping[str, Any], status: str, detail: str) -> list[Check]:
    meddling, extra = _texts(report.get("meddling")), _texts(report.get("extra"))
    suspicious, controls = _texts(report.get("suspicious")), str(report.get("controls", ""))
    found = [
        ("finished", f"{DIED[status]} {detail}".rstrip() if status in DIED else ""),
        ("tests untouched", f"Put back before grading: {said(meddling)}." if meddling else ""),
        ("no other tests", f"Tests that the task does not know: {said(extra)}." if extra else ""),
        ("controls fail", controls),
        ("nothing suspicious", f"Not allowed beside tests: {said(suspicious)}." if suspicious else ""),
    ]
    return [
        Check(name=name, role="guard", score=0.0 if why else 1.0, reason=why[:400]) for name, why in found
    ]


def _results(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    tests = report.get("tests")
    if not isinstance(tests, list):
        return {}
    return {str(test.get("id", "")): test for test in tests if isinstance(test, Mapping)}


def _test_check(name: str, got: Mapping[str, Any] | None) -> Check:
    state = str(got.get("status", "")) if got else "missing"
    if state == "passed":
        return Check(name=name, score=1.0)
    why = str(got.get("reason", ""))[:200] if got else "it was not found"
    word = {"failed": "failed", "skipped": "was skipped", "missing": "did not run"}.get(state, "failed")
    return Check(name=name, score=0.0, reason=f"Test {name} {word}: {why}.".replace(": .", "."))


def _share(reference: Mapping[str, Any], scores: Mapping[str, float | None]) -> float:
    """Share of the tests that failed before and pass now; 0 when one that passed before is broken, or
    when the task does not say which failed."""
    failing = [name for name in reference.get("failing", []) if name in scores]
    if not failing or any(score != 1.0 for name, score in scores.items() if name not in failing):
        return 0.0
    return sum(scores[name] == 1.0 for name in failing) / len(failing)


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def _check(params: Mapping[str, Any], reference: Any) -> None:
    unknown = [name for name in reference["ids"] if name.split("::")[0] not in reference["tests"]]
    if unknown:
        raise InvalidVerifier(f"Verifier 'repo_tests', reference: no test file holds {said(unknown)}.")
    astray = [name for name in reference.get("failing", []) if name not in reference["ids"]]
    if astray:
        raise InvalidVerifier(f"Verifier 'repo_tests', reference: not among the ids: {said(astray)}.")


_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}

KIND = VerifierKind(
    name=EVIDENCE,
    title="Repository tests",
    description=(
        "Hidden tests judge a changed repository. Only allow-listed sources are taken from the answer; "
        "tests come from the task and run apart from the solution. Missing or skipped is failed."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {**PARAMS, "mode": {"enum": ["apart", "inside"]}},
        "required": ["sources"],
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "files": FILES,
            "shown": FILES,
            "tests": {**FILES, "minProperties": 1},
            "ids": {**_TEXTS, "minItems": 1, "uniqueItems": True},
            "failing": _TEXTS,
        },
        "required": ["files", "tests", "ids"],
        "additionalProperties": False,
    },
    check=_check,
)
