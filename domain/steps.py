"""What the steps of an episode say by themselves, whatever its verifier looks at.

The layers beside the terminal one: a turn that was no action costs form, a step that the sandbox ended
or the service refused costs process. Each is counted, not averaged, so that harmless steps pad nothing.
"""

from collections.abc import Iterable, Sequence

from domain.contracts import Check, Step

BAD_ACTION = "bad_action"  # SandboxStep.status of a turn in which no action could be read
_FAILED = frozenset({"refused", "signal", "timeout", "cpu", "oom", "output_limit"})


def step_checks(steps: Sequence[Step]) -> tuple[Check, ...]:
    """A format and a process check, each 0.5 to the number of faults; none without a sandbox."""
    statuses = [step.sandbox.status for step in steps if step.sandbox is not None]
    if not statuses:
        return ()
    unread = sum(status == BAD_ACTION for status in statuses)
    failed = sum(status in _FAILED for status in statuses)
    return (
        _check("actions", "format", unread, "turns were no action"),
        _check("steps", "process", failed, "steps were refused or ended"),
    )


def did_nothing(answer: str, steps: Iterable[Step]) -> bool:
    """A no-op: neither an answer nor anything changed."""
    return not answer.strip() and not any(step.sandbox and step.sandbox.changes for step in steps)


def _check(name: str, role: str, faults: int, what: str) -> Check:
    return Check(name=name, role=role, score=0.5**faults, reason=f"{faults} {what}." if faults else "")
