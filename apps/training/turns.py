"""A trajectory's turns as a person steps through them: what was said, done, printed and changed."""

from typing import NamedTuple

from apps.core.ui.numbers import duration
from apps.core.ui.texts import DiffLine
from apps.training import tokens
from domain.contracts import FileChange, Flag, SandboxStep, Step, Trajectory

ALL_SHOWN = 6  # with more turns than this, one is shown at a time
_PNG = "data:image/png;base64,"
_MIB = 1 << 20


class Change(NamedTuple):
    """One changed file with the lines of its difference; none for a binary file."""

    path: str
    change: str
    bytes: int
    lines: list[DiffLine]


class Ran(NamedTuple):
    """What the sandbox did in a turn. ``facts`` are figures with units; ``picture`` is a data URL."""

    step: SandboxStep
    facts: list[tuple[str, str]]
    changes: list[Change]
    picture: str


class Turn(NamedTuple):
    number: int
    step: Step
    ran: Ran | None
    flags: list[Flag]
    tokens: list[tokens.Token]
    more: int  # tokens that are not shown

    @property
    def words(self) -> str:
        """The turn in a few words, for the list of turns."""
        said = self.ran.step.command if self.ran else self.step.action
        return " ".join(said.split())[:80] or "nothing"


def turns_of(whole: Trajectory, tokenizer_path: str, only: int | None = None) -> list[Turn]:
    """All turns; tokens and differences are worked out for turn ``only`` (from 1), or for all."""
    return [
        _turn(number, step, whole, tokenizer_path if only in (None, number) else None)
        for number, step in enumerate(whole.steps, start=1)
    ]


def _turn(number: int, step: Step, whole: Trajectory, tokenizer_path: str | None) -> Turn:
    shown = tokenizer_path is not None
    return Turn(
        number,
        step,
        _ran(step.sandbox, shown) if step.sandbox else None,
        [flag for flag in whole.flags if flag.step == number - 1],
        tokens.tokens_of(step, tokenizer_path) if tokenizer_path is not None else [],
        max(0, len(step.token_ids) - tokens.SHOWN),
    )


def _ran(step: SandboxStep, shown: bool) -> Ran:
    changes = [_change(change) for change in step.changes] if shown else []
    return Ran(step, _facts(step), changes, _picture(step) if shown else "")


def _facts(step: SandboxStep) -> list[tuple[str, str]]:
    facts = []
    if step.exit_code is not None:
        facts.append(("Exit code", str(step.exit_code)))
    if step.signal is not None:
        facts.append(("Signal", str(step.signal)))
    if step.wall_s:
        facts.append(("Wall clock", _time(step.wall_s)))
    if step.user_s or step.sys_s:
        facts.append(("Processor", f"{_time(step.user_s)} user, {_time(step.sys_s)} system"))
    if step.maxrss_bytes:
        facts.append(("Memory", f"{step.maxrss_bytes / _MIB:.1f} MiB at most"))
    return facts


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)


def _change(change: FileChange) -> Change:
    lines = []
    for line in change.diff.splitlines():
        if line.startswith(("--- ", "+++ ")):
            continue
        if line.startswith("@@"):
            lines.append(DiffLine("…", line.strip("@ "), "skip-lines"))
        elif line.startswith("+"):
            lines.append(DiffLine("+", line[1:], "new"))
        elif line.startswith("-"):
            lines.append(DiffLine("−", line[1:], "gone"))
        else:
            lines.append(DiffLine(" ", line[1:], "same"))
    return Change(change.path, change.change, change.bytes, lines)


def _picture(step: SandboxStep) -> str:
    """A picture that the measuring sandbox made; nothing that a program printed is ever shown as one."""
    return step.picture if step.picture.startswith(_PNG) else ""
