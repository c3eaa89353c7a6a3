"""The modelling loop: script, mesh, constraints, adjust, submit.

``environment_params``: ``constraints`` (what of the target may be seen: the verifier ``geometry``'s
reference ``target``, with ``relative`` and ``distance`` as tolerances) and ``max_turns``. A script runs in
fresh sandboxes of the image ``modelling`` (see ``workers/collect/meshes.py``); the reply names what was
measured and which visible constraints fail. The answer is the submitted script.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from domain.contracts import SandboxStep, TaskSpec, VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec, verify
from workers.collect.pictures import picture_of
from workers.environments.actions import Action, Definition
from workers.environments.changes import text_changes
from workers.environments.protocol import EnvironmentBroken
from workers.environments.tool_definitions import tool
from workers.environments.turns import Outcome, TaskRefused
from workers.environments.workspace import cut
from workers.sandbox.protocol import ExecResult, SandboxUnavailable

# A script's program as it ended, where one ran, and the report of ``workers/collect/geometry.py``.
Inspect = Callable[[str], Awaitable[tuple[ExecResult | None, Mapping[str, Any]]]]

_SCRIPT = "part.py"
_LOG_CHARS = 4000
_SHOWN = ("solid", "volume", "area", "low", "high", "genus", "bodies")
_HOST = frozenset({"infra_error", "unavailable"})


class Modelling:
    """A ``World`` that keeps the last script."""

    def __init__(self, inspect: Inspect) -> None:
        self._inspect = inspect
        self._script: str | None = None
        self._submitted = ""
        self._visible: TaskSpec | None = None

    def tools(self) -> Sequence[Definition]:
        return TOOLS

    async def start(self, task: TaskSpec) -> None:
        self._visible = visible_task(task)

    async def do(self, action: Action) -> Outcome:
        code = action.arguments.get("code")
        if action.tool == "submit":
            return self._submit(code)
        changes = text_changes({} if self._script is None else {_SCRIPT: self._script}, {_SCRIPT: str(code)})
        self._script = str(code)
        try:
            result, report = await self._inspect(self._script)
        except SandboxUnavailable as error:
            raise EnvironmentBroken(str(error)) from error
        status, detail = str(report.get("status", "")), str(report.get("detail", ""))
        if status in _HOST:
            raise EnvironmentBroken(f"the part was not made: {detail[:200]}")
        reply = self._said(report)
        step = SandboxStep(
            command="run_script",
            status={"ok": "ok", "error": "nonzero"}.get(status, status),
            detail=detail,
            stdout=reply,
            changes=changes,
            picture=picture_of(report),
        )
        return Outcome(reply, step if result is None else step.model_copy(update=_resources(result)))

    def takes_words(self, text: str) -> bool:
        return False

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def answer_text(self) -> str:
        return self._submitted

    async def close(self) -> None:
        return None

    def _submit(self, code: str | None) -> Outcome:
        self._submitted = code if code is not None else self._script or ""
        before = {} if self._script is None else {_SCRIPT: self._script}
        after = {_SCRIPT: self._submitted} if self._submitted else {}
        return Outcome("", SandboxStep(command="submit", changes=text_changes(before, after)), over=True)

    def _said(self, report: Mapping[str, Any]) -> str:
        if report.get("status") != "ok":
            return f"[the script failed]\n{report.get('detail', '')}".rstrip()
        metrics = report.get("metrics", {})
        lines = [f"{name}: {_value(metrics[name])}" for name in _SHOWN if name in metrics]
        if self._visible is None:
            return "\n".join(lines)
        verdict = verify(self._visible, self._script or "", {"geometry": report})
        broken = verdict.reasons or ("All visible constraints hold.",)
        return "\n".join([*lines, *broken])


def visible_task(task: TaskSpec) -> TaskSpec | None:
    """``task`` judged by its visible constraints alone; None without any. Raises ``TaskRefused``."""
    constraints = task.environment_params.get("constraints")
    if not constraints:
        return None
    if not isinstance(constraints, Mapping):
        raise TaskRefused(f'task {task.id}: environment_params["constraints"] must be an object')
    tolerances = {name: constraints[name] for name in ("relative", "distance") if name in constraints}
    target = {name: value for name, value in constraints.items() if name not in tolerances}
    spec, reference = VerifierSpec(kind="geometry", params=tolerances), {"target": target}
    try:
        check_spec(spec, reference)
    except InvalidVerifier as error:
        raise TaskRefused(f"task {task.id}: its constraints are not sound: {error}") from error
    return task.model_copy(update={"verifier": spec, "reference": reference})


def _resources(result: ExecResult) -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "signal": result.signal,
        "stderr": cut(result.stderr.text, _LOG_CHARS),
        "wall_s": result.wall_s,
        "user_s": result.user_s,
        "sys_s": result.sys_s,
        "maxrss_bytes": result.maxrss_bytes,
    }


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " × ".join(f"{item:.6g}" for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()


TOOLS: tuple[Definition, ...] = (
    tool("run_script", "Make the part and measure it.", code="the whole script"),
    tool(
        "submit",
        "Hand in the script, by default the one that ran last. Ends the work.",
        optional=("code",),
        code="the whole script",
    ),
)
