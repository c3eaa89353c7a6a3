"""How a program ended, judged from what the agent saw and what the host alone can see."""

import signal
from dataclasses import dataclass, field
from typing import Literal

from workers.sandbox.protocol import Captured, ExecResult, Limits, Status

_NEAR = 0.9  # of a limit: a dying program rarely touches it to the byte

Reason = Literal["", "timeout", "output_limit", "finished"]


@dataclass
class Outcome:
    """``reason`` is why the host ended the program, if it did. ``code`` and ``killed_by`` are the
    agent's word; ``lost`` says that the agent went down with the program."""

    reason: Reason = ""
    code: int | None = None
    killed_by: int | None = None
    lost: str = ""
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    wall_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    maxrss_bytes: int | None = None
    oom_kills: int = 0


def exec_result(outcome: Outcome, limits: Limits) -> ExecResult:
    code, killed_by = outcome.code, outcome.killed_by
    if code is not None and 128 < code <= 128 + 64:  # as a shell says it
        killed_by, code = code - 128, None
    return ExecResult(
        status=_status(outcome, killed_by, limits),
        exit_code=None if outcome.reason else code,
        signal=None if outcome.reason else killed_by,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        wall_s=outcome.wall_s,
        user_s=outcome.user_s,
        sys_s=outcome.sys_s,
        maxrss_bytes=outcome.maxrss_bytes,
        detail=f"the sandbox ended with the program: {outcome.lost}" if outcome.lost else "",
    )


def _status(outcome: Outcome, killed_by: int | None, limits: Limits) -> Status:
    if outcome.reason == "output_limit":
        return "output_limit"
    if outcome.oom_kills:
        return "oom"
    if outcome.reason == "timeout":
        return "timeout"
    if outcome.reason == "finished":
        return "ok"
    if outcome.code == 0 and not outcome.lost:
        return "ok"
    spent_s = outcome.user_s + outcome.sys_s
    if killed_by == signal.SIGXCPU or (killed_by == signal.SIGKILL and spent_s >= limits.cpu_s):
        return "cpu"
    if (outcome.maxrss_bytes or 0) >= _NEAR * limits.memory_bytes:
        return "oom"
    return "nonzero" if killed_by is None and not outcome.lost else "signal"
