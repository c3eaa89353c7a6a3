"""The coding loop: read, edit, run, read errors, edit again, submit.

``environment_params``: ``files`` {path: text} to start with (visible tests may be among them, hidden
ones never), ``run`` (the command that ``run`` without arguments means), ``protected`` (paths that
should stay as they are; a change is reported, not prevented), ``image``, ``run_timeout_s``,
``feedback_chars``, ``max_turns``. Evidence: ``workspace`` {status, files, left_out, changed}, graded
elsewhere in a fresh sandbox. The answer's text is the patch.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import SandboxStep, TaskSpec
from workers.environments.actions import Action, Definition
from workers.environments.changes import text_changes
from workers.environments.tool_definitions import tool
from workers.environments.turns import Outcome, TaskRefused
from workers.environments.workspace import (
    Died,
    Open,
    UnsafePath,
    Workspace,
    cut,
    died_step,
    printable,
    workspace_evidence,
)
from workers.sandbox.protocol import MIB, Limits, SandboxSpec

_FEEDBACK_CHARS = 2000
_READ_CHARS = 12_000
_RUN_TIMEOUT_S = 10.0
_PATCH_CHARS = 64_000
_COMMAND_CHARS = 2000
_WORKSPACE_BYTES = 16 * MIB  # every step that changes something keeps a snapshot of it
_PREIMPORT = ("unittest", "dataclasses", "json", "re", "typing")  # what most programs and tests import
# The interpreter is isolated, so that nothing but the workspace and the image can be imported.
_ENVIRONMENT = {"PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1"}


class Coding:
    """A ``World`` around one sandbox."""

    def __init__(self, open_sandbox: Open) -> None:
        self._open_sandbox = open_sandbox
        self._workspace: Workspace | None = None
        self._start: dict[str, str] = {}
        self._end: tuple[dict[str, str], list[str]] | None = None
        self._params: Mapping[str, Any] = {}
        self._died = ""
        self._timeout_s = _RUN_TIMEOUT_S

    def tools(self) -> Sequence[Definition]:
        return TOOLS

    async def start(self, task: TaskSpec) -> None:
        self._params, self._start = task.environment_params, files_of(task)
        self._timeout_s = float(self._params.get("run_timeout_s", _RUN_TIMEOUT_S))
        spec = SandboxSpec(
            image=str(self._params.get("image", "python")),
            limits=Limits(
                wall_s=self._timeout_s,
                cpu_s=max(1, math.ceil(self._timeout_s)),
                workspace_bytes=_WORKSPACE_BYTES,
            ),
            preimport=_PREIMPORT,
        )
        try:
            self._workspace = await Workspace.opened(self._open_sandbox, spec, self._start)
        except UnsafePath as error:
            raise TaskRefused(f"task {task.id}: {error}") from error

    async def do(self, action: Action) -> Outcome:
        shown = _shown(action)
        try:
            return await _DO[action.tool](self, shown, action.arguments)
        except (UnsafePath, FileNotFoundError, ValueError) as error:
            said = _refusal(error, action.arguments)
            step = SandboxStep(command=shown, status="refused", detail=said, snapshot=self._live.snapshot)
            return Outcome(f"Error: {said}", step)
        except Died as error:
            self._died = str(error)
            return Outcome("", died_step(shown, self._died), over=True)

    def takes_words(self, text: str) -> bool:
        return False

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        if not self._died:
            try:
                self._end = await self._live.files(self._start)
            except Died as error:
                self._died = str(error)
        if self._end is None:
            return {"workspace": {"status": "died", "files": {}, "detail": self._died}}
        files, left_out = self._end
        protected = [str(path) for path in self._params.get("protected", ())]
        changed = [path for path in protected if files.get(path) != self._start.get(path)]
        return {"workspace": workspace_evidence(files, left_out=left_out, changed=changed)}

    def answer_text(self) -> str:
        if self._end is None:
            return ""
        patch = "".join(change.diff for change in text_changes(self._start, self._end[0]))
        return cut(patch, _PATCH_CHARS)

    async def close(self) -> None:
        if self._workspace is not None:
            await self._workspace.close()

    @property
    def _live(self) -> Workspace:
        assert self._workspace is not None, "start comes first"
        return self._workspace

    async def _list(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        infos = [info for info in await self._live.infos() if info.kind != "folder"]
        lines = [f"{printable(info.path)} ({info.bytes} bytes)" for info in infos]
        return self._looked(shown, cut("\n".join(lines), _READ_CHARS) or "There are no files.")

    async def _read(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        return self._looked(shown, cut(await self._live.read(arguments["path"]), _READ_CHARS))

    async def _write(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        path, text = arguments["path"], arguments["content"]
        step = await self._live.write(path, text, command=shown)
        return Outcome(f"Wrote {path}, {len(text.encode())} bytes.", step)

    async def _replace(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        path, old = arguments["path"], arguments["old"]
        text = await self._live.read(path)
        if (count := text.count(old)) != 1:
            raise ValueError(f"the old text stands {count} times in {path}; it must stand there once")
        step = await self._live.write(path, text.replace(old, arguments["new"]), command=shown)
        return Outcome(f"Changed {path}.", step)

    async def _run(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        command = arguments.get("command") or self._params.get("run")
        if not command:
            raise ValueError("say which command to run")
        argv = split_command(str(command))
        step = await self._live.run(argv, command=str(command), timeout_s=self._timeout_s, env=_ENVIRONMENT)
        return Outcome(feedback(step, int(self._params.get("feedback_chars", _FEEDBACK_CHARS))), step)

    async def _submit(self, shown: str, arguments: Mapping[str, Any]) -> Outcome:
        return Outcome("", SandboxStep(command="submit", snapshot=self._live.snapshot), over=True)

    def _looked(self, shown: str, reply: str) -> Outcome:
        return Outcome(reply, SandboxStep(command=shown, stdout=reply, snapshot=self._live.snapshot))


def files_of(task: TaskSpec) -> dict[str, str]:
    """The start files of a task. Raises ``TaskRefused``."""
    files = task.environment_params.get("files", {})
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
        raise TaskRefused(f'task {task.id}: environment_params["files"] must be texts by path')
    return dict(files)


def split_command(command: str) -> list[str]:
    """One program and its arguments. Raises ``ValueError`` in words for the model: there is no shell."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"the command cannot be read: {error}") from error
    if not argv:
        raise ValueError("say which command to run")
    joins = [part for part in argv if part in ("&&", "||", "|", ";", ">", ">>", "<", "&")]
    if joins:
        raise ValueError(f"there is no shell, so no {joins[0]!r}: run one program at a time")
    return ["python", *argv[1:]] if argv[0] in ("python", "python3") else argv


def feedback(step: SandboxStep, limit: int) -> str:
    """What the model reads of a program that ran: how it ended, then its output, cut in the middle."""
    ends = {
        "ok": "exit code 0",
        "nonzero": f"exit code {step.exit_code}",
        "signal": f"ended by signal {step.signal}",
        "timeout": "stopped: it took too long",
        "cpu": "stopped: it used up its processor time",
        "oom": "stopped: it used up its memory",
        "output_limit": "stopped: it wrote too much output",
    }
    output = "\n".join(part.rstrip() for part in (step.stdout, step.stderr) if part.strip())
    return cut(f"[{ends.get(step.status, step.status)}]\n{output}".rstrip(), limit)


def _shown(action: Action) -> str:
    """The action as a person reads it; contents are in the diff."""
    parts = [str(value) for name, value in action.arguments.items() if name in ("path", "command")]
    return cut(" ".join([action.tool, *parts]), _COMMAND_CHARS)


def _refusal(error: Exception, arguments: Mapping[str, Any]) -> str:
    path = arguments.get("path")
    if isinstance(error, FileNotFoundError):
        return f"there is no file {path!r}"
    if isinstance(error, UnicodeDecodeError):
        return f"{path!r} is no text file"
    return str(error)


_PATH = "relative to the workspace"
TOOLS: tuple[Definition, ...] = (
    tool("list_files", "Name all files."),
    tool("read_file", "Read one file.", path=_PATH),
    tool("write_file", "Write one file, new or anew.", path=_PATH, content="the whole content"),
    tool(
        "replace_in_file",
        "Replace a text that stands exactly once in a file.",
        path=_PATH,
        old="the text to replace",
        new="what stands there afterwards",
    ),
    tool(
        "run",
        "Run one program, without a shell; without a command, the visible tests.",
        optional=("command",),
        command="such as: python -m unittest",
    ),
    tool("submit", "Hand in the files as they are now. Ends the work."),
)

_DO = {
    "list_files": Coding._list,
    "read_file": Coding._read,
    "write_file": Coding._write,
    "replace_in_file": Coding._replace,
    "run": Coding._run,
    "submit": Coding._submit,
}
