"""A test suite run for real: apart from the solution, in two sandboxes, or inside one process.

Apart: the grader's sandbox holds the tests, the solution's sandbox the solution. They have no way to
each other; the host relays one request at a time, checks each reply to be typed JSON and charges
whoever breaks the rules. So the solution sees arguments only, and what it answers is data. Tests that
nobody trusts either (written by a model, run against known programs) can be run the same way.
"""

import asyncio
import os
import secrets
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from domain import typed_json
from workers.collect.frames import Forged, Gone, Line
from workers.collect.solution_side import SolutionSide
from workers.sandbox.protocol import Backend, ExecResult, Limits, SandboxSpec, SandboxUnavailable

_REPO = "repo/"
_DETAIL = 300
_MOST_REQUESTS = 50_000
_SLACK = 2.0
_PATIENCE_S = 120.0  # longer than anybody waits for the grader's sandbox; the solution's own time is counted
_STATES = ("passed", "failed", "skipped")


@dataclass
class SuiteReport:
    """``status`` is the host's word: that of the sandbox that ended wrongly, else "ok". ``results`` has
    an entry for each test that was run: (status, reason). ``found`` are the ids collected."""

    status: str = "ok"
    detail: str = ""
    found: tuple[str, ...] = ()
    broken: dict[str, str] = field(default_factory=dict)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)


async def run_apart(
    backend: Backend,
    *,
    tests: Mapping[str, str],
    ids: Sequence[str] | None,
    solution: Mapping[str, str],
    roots: Sequence[str],
    limits: Limits,
) -> SuiteReport:
    """Run ``ids`` (None: all that are found) of ``tests`` against ``solution`` in a sandbox of its own."""
    async with _places():
        far = SolutionSide(limits.wall_s * _SLACK)
        argv = [*backend.interpreter, "/workspace/solution_agent.py"]
        running = asyncio.create_task(
            backend.run(
                SandboxSpec(limits=replace(limits, wall_s=limits.wall_s + _PATIENCE_S)),
                argv,
                files={**_repo(solution), **_agent("solution_agent.py")},
                talk=far.talk,
            )
        )
        try:
            await far.begun(running)  # waiting for a sandbox is nobody's own time
            report = await _grade(backend, tests, ids, roots, limits, far)
        finally:
            far.over.set()
            await asyncio.wait([running])
        return _with_solution(report, running, far)


async def run_inside(
    backend: Backend,
    *,
    tests: Mapping[str, str],
    ids: Sequence[str] | None,
    solution: Mapping[str, str],
    limits: Limits,
) -> SuiteReport:
    """Run the tests in one process with the solution. What that process says can be forged."""
    return await _grade(backend, {**solution, **tests}, ids, (), limits, None, paths=tuple(tests))


async def _grade(
    backend: Backend,
    files: Mapping[str, str],
    ids: Sequence[str] | None,
    roots: Sequence[str],
    limits: Limits,
    far: "SolutionSide | None",
    paths: Sequence[str] | None = None,
) -> SuiteReport:
    report = SuiteReport()
    names = sorted(path for path in paths or files if path.rpartition("/")[2].startswith("test"))
    grader = _Grader(report, ids, names, roots, far)
    # Whoever uses up time computing is stopped by the CPU limit. The clock is there for those who wait, and
    # must not strike on a busy machine; the solution's end is heard first.
    wall_s = limits.wall_s * (_SLACK + 1) + 10.0 if far else limits.wall_s * _SLACK
    try:
        result = await backend.run(
            SandboxSpec(limits=replace(limits, wall_s=wall_s)),
            [*backend.interpreter, "/workspace/grader_agent.py"],
            files={**_repo(files), **_agent("grader_agent.py"), **_agent("checks.py", _REPO)},
            talk=grader.talk,
        )
    except SandboxUnavailable as unavailable:
        return SuiteReport(status="unavailable", detail=str(unavailable)[:_DETAIL])
    report.status = "nonzero" if result.status == "ok" and not grader.complete else result.status
    report.detail = (grader.trouble or _detail(result))[:_DETAIL]
    return report


class _Grader:
    def __init__(
        self,
        report: SuiteReport,
        ids: Sequence[str] | None,
        paths: Sequence[str],
        roots: Sequence[str],
        far: "SolutionSide | None",
    ) -> None:
        self._report = report
        self._ids = ids
        self._start = {"paths": list(paths), "roots": list(roots), "apart": far is not None}
        self._far = far
        self._requests = 0
        self.complete = False
        self.trouble = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        try:
            first = await self._relayed(line, self._start)
            self._report.found = _texts(first.get("ids"))
            broken = first.get("broken")
            if isinstance(broken, dict):
                self._report.broken = {str(path): str(why)[:_DETAIL] for path, why in broken.items()}
            wanted = self._report.found if self._ids is None else self._ids
            for name in wanted:
                if name in self._report.found:
                    self._report.results[name] = _outcome(await self._relayed(line, {"run": name}))
            self.complete = True
        except Forged as forged:
            self.trouble = str(forged)
        except Gone as gone:
            self.trouble = str(gone)
            await asyncio.sleep(1.0)  # it is ending: let its own end say how

    async def _relayed(self, line: Line, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to ``request``, after all that the grader asks of the solution on the way."""
        frame = await line.ask(request)
        while "ask" in frame:
            self._requests += 1
            if self._far is None or self._requests > _MOST_REQUESTS or not isinstance(frame["ask"], dict):
                raise Forged("the tests asked for what they may not have")
            frame = await line.go_on(await self._far.answer(frame["ask"]))
        return frame


def _with_solution(
    report: SuiteReport, running: "asyncio.Task[ExecResult]", far: SolutionSide
) -> SuiteReport:
    """The solution's own end counts before the grader's: an infrastructure error only where no code of
    it had run."""
    error = running.exception()
    if isinstance(error, SandboxUnavailable):
        return replace(report, status="unavailable", detail=str(error)[:_DETAIL])
    if error is not None:
        raise error
    result = running.result()
    if result.status == "infra_error" or report.status in ("infra_error", "unavailable"):
        status = "infra_error" if result.status == "infra_error" else report.status
        return replace(report, status=status, detail=report.detail or _detail(result))
    if result.status != "ok" or far.trouble:
        ended = "timeout" if far.late else "nonzero"
        status = ended if result.status == "ok" else result.status
        return replace(report, status=status, detail=(far.trouble or _detail(result))[:_DETAIL])
    return report


def _outcome(frame: Mapping[str, Any]) -> tuple[str, str]:
    status, reason = frame.get("status"), frame.get("reason")
    if status not in _STATES or not isinstance(reason, str) or set(frame) != {"status", "reason"}:
        raise Forged("a test had no known outcome")
    return str(status), reason[:_DETAIL]


def _places() -> asyncio.Semaphore:
    """Whoever holds one sandbox and waits for a second must not be many: a bounded pool would have none
    left for anybody."""
    loop = asyncio.get_running_loop()
    if loop not in _loops:
        _loops[loop] = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))
    return _loops[loop]


_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = (
    weakref.WeakKeyDictionary()
)


def shuffled(names: Sequence[str]) -> list[str]:
    """An order that nobody can foresee."""
    order = list(names)
    secrets.SystemRandom().shuffle(order)
    return order


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _detail(result: ExecResult) -> str:
    if result.status == "ok":
        return ""
    return (
        result.detail or "".join(result.stderr.text.strip().splitlines()[-1:]) or f"ended by {result.status}"
    )


def _repo(files: Mapping[str, str]) -> dict[str, bytes]:
    return {_REPO + path: text.encode("utf-8", "replace") for path, text in files.items()}


@lru_cache(maxsize=8)
def _source(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


def _agent(name: str, folder: str = "") -> dict[str, bytes]:
    """An agent's file, and the typed JSON it speaks."""
    return {folder + name: _source(name), "typed_json.py": Path(typed_json.__file__).read_bytes()}
