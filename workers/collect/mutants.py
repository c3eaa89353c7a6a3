"""Evidence for ``mutants``: an answer's tests run against the right program and against each mutant,
every time in two fresh sandboxes. The tests are the answer, so what they say is data.
"""

from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.mutants import programs, suite_files
from domain.verifiers.repository import roots
from workers.collect.suite import SuiteReport, run_apart
from workers.sandbox.protocol import Backend, Limits


async def collect_mutants(backend: Backend, task: TaskSpec, answer: str, *, limits: Limits) -> dict[str, Any]:
    """See ``domain.verifiers.mutants`` for the report."""
    tests, asked = suite_files(answer), programs(task)
    runs: list[dict[str, Any]] = []
    for name, files in asked:
        if runs and runs[0]["verdict"] != "passed":  # nothing can be noticed by tests that fail anyway
            runs.append({"program": name, "verdict": "broken", "tests": 0, "reason": "not run"})
            continue
        report = await run_apart(
            backend, tests=tests, ids=None, solution=files, roots=roots(files), limits=limits
        )
        if report.status in ("infra_error", "unavailable"):
            return {"status": report.status, "runs": [], "detail": report.detail}
        runs.append({"program": name, **_outcome(report)})
    return {"status": "ok", "runs": runs, "detail": ""}


def _outcome(report: SuiteReport) -> dict[str, Any]:
    """ "broken" where the tests did not load, or did not all come to an end: that notices nothing."""
    if report.broken:
        return _said("broken", report, next(iter(report.broken.values())))
    if not report.found or len(report.results) != len(report.found):
        return _said("broken", report, report.detail or "there is no test")
    wrong = [(state, reason) for state, reason in report.results.values() if state != "passed"]
    if any(state == "skipped" for state, _ in wrong):
        return _said("broken", report, "a test was skipped")
    if wrong:
        return _said("failed", report, wrong[0][1])
    return _said("passed" if report.status == "ok" else "broken", report, report.detail)


def _said(verdict: str, report: SuiteReport, reason: str) -> dict[str, Any]:
    return {"verdict": verdict, "tests": len(report.found), "reason": reason}
