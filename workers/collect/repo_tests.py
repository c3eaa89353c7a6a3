"""Evidence for ``repo_tests``: hidden tests run against a changed repository, in fresh sandboxes.

The answer is final when this starts. Only allow-listed sources of it are copied, tests come from the
task. ``apart`` keeps tests and solution in sandboxes of their own. ``inside`` shares a process: there
the sources are searched first, and tests that must fail run among the others, each asked for alone,
so that a program which says "passed" to everything gives itself away.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.repo_tests import graded, importable
from domain.verifiers.repository import Graded
from domain.verifiers.screening import suspicious
from workers.collect.suite import SuiteReport, run_apart, run_inside, shuffled
from workers.sandbox.protocol import Backend, Limits

_CONTROLS = (
    "    from checks import same\n    same(1, 2)\n",
    "    assert [1] == [2]\n",
    "    from checks import raises\n    with raises(ValueError):\n        pass\n",
)


async def collect_repo_tests(
    backend: Backend,
    task: TaskSpec,
    answer: str,
    seen: Mapping[str, Mapping[str, Any]],
    *,
    limits: Limits,
) -> dict[str, Any]:
    """See ``domain.verifiers.repo_tests`` for the report. ``seen`` may hold ``workspace``."""
    repository = graded(task, answer, seen.get("workspace"))
    if repository.trouble:
        return {"status": "ok", **_nothing_ran(task, repository), "detail": repository.trouble}
    if task.verifier.params.get("mode", "apart") == "inside":
        return await _inside(backend, task, repository, limits)
    report = await run_apart(
        backend,
        tests=task.reference["tests"],
        ids=task.reference["ids"],
        solution=repository.files,
        roots=importable(task, repository.files),
        limits=limits,
    )
    return _evidence(task, repository, report)


async def _inside(backend: Backend, task: TaskSpec, repository: Graded, limits: Limits) -> dict[str, Any]:
    found = _searched(repository.files, task.reference["files"])
    if found:
        return {"status": "ok", **_nothing_ran(task, repository), "suspicious": found, "detail": ""}
    tests, names = _with_controls(task.reference["tests"])
    report = await run_inside(
        backend,
        tests=tests,
        ids=shuffled([*task.reference["ids"], *names]),
        solution=repository.files,
        limits=limits,
    )
    lied = [name for name in names if report.results.get(name, ("",))[0] == "passed"]
    evidence = _evidence(task, repository, report, controls=frozenset(names))
    return {**evidence, "controls": "A test that must fail was reported as passed." if lied else ""}


def _with_controls(tests: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The test files, each ending in tests that must fail, and the ids of those. They stand in the same
    files, so that whatever was done to the others on import was done to them."""
    changed, names = {}, []
    for path, text in tests.items():
        mine = [f"test_{secrets.token_hex(4)}" for _ in _CONTROLS]
        bodies = "".join(f"\n\ndef {name}():\n{body}" for name, body in zip(mine, _CONTROLS, strict=True))
        changed[path] = f"{text}\n{bodies}"
        names += [f"{path}::{name}" for name in mine]
    return changed, names


def _searched(files: Mapping[str, str], pristine: Mapping[str, str]) -> list[str]:
    """What the answer brought that was not in the task's own sources."""
    found = []
    for path, text in sorted(files.items()):
        if text == pristine.get(path) or not path.endswith(".py"):
            continue
        before = {_without_line(word) for word in suspicious(pristine.get(path, ""))}
        found += [f"{path}: {word}" for word in suspicious(text) if _without_line(word) not in before]
    return found


def _without_line(word: str) -> str:
    return word.rpartition(" (line ")[0] or word


def _evidence(
    task: TaskSpec, repository: Graded, report: SuiteReport, controls: frozenset[str] = frozenset()
) -> dict[str, Any]:
    known = {*task.reference["ids"], *controls}
    tests = []
    for name in task.reference["ids"]:
        status, reason = report.results.get(name, ("missing", report.broken.get(name.split("::")[0], "")))
        tests.append({"id": name, "status": status, "reason": reason})
    return {
        "status": report.status,
        "tests": tests,
        "extra": [name for name in report.found if name not in known],
        "meddling": list(repository.meddling),
        "controls": "",
        "suspicious": [],
        "detail": report.detail,
    }


def _nothing_ran(task: TaskSpec, repository: Graded) -> dict[str, Any]:
    why = repository.trouble or "the sources were refused"
    return {
        "tests": [{"id": name, "status": "missing", "reason": why} for name in task.reference["ids"]],
        "extra": [],
        "meddling": list(repository.meddling),
        "controls": "",
        "suspicious": [],
    }
