"""A sandbox's workspace as an environment uses it: run, look, change, and say what each step did.

Owns the record of a step: what ran, how it ended, which files changed, the snapshot after it. A sandbox
that dies after the model's code ran is the model's failure (``Died``); where the host's side fails, the
step is done again from the snapshot before it, and only then is it ``EnvironmentBroken``.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from domain.contracts import FileChange, SandboxStep
from workers.environments.protocol import EnvironmentBroken
from workers.sandbox.diff import changes
from workers.sandbox.manifest import SnapshotBroken
from workers.sandbox.protocol import (
    ExecResult,
    FileInfo,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    UnsafePath,
)
from workers.sandbox.replay import PUT, output_digest

# A fresh sandbox, empty or as a snapshot was; raises SandboxUnavailable.
Open = Callable[[SandboxSpec, Snapshot | None], Awaitable[Sandbox]]
Done = TypeVar("Done")
log = logging.getLogger(__name__)

MAX_FILES = 200
MAX_FILE_BYTES = 256 * 1024
MAX_TOTAL_BYTES = 2 * 1024 * 1024
_LOG_CHARS = 8_000


class Died(Exception):
    """The sandbox is gone, and a program of the model had been started in it."""


class Workspace:
    """One live sandbox. Use it from one task at a time."""

    def __init__(self, open_sandbox: Open, sandbox: Sandbox, start: Snapshot) -> None:
        self._open_sandbox = open_sandbox
        self._sandbox = sandbox
        self._snapshot = start
        self._closed = False

    @classmethod
    async def opened(cls, open_sandbox: Open, spec: SandboxSpec, files: Mapping[str, str]) -> "Workspace":
        """A fresh sandbox with ``files`` in it. Raises ``EnvironmentBroken``, and ``UnsafePath`` for files
        that would leave the workspace."""
        async with _host_side():
            sandbox = await open_sandbox(spec, None)
        try:
            async with _host_side():
                await sandbox.put({path: text.encode() for path, text in files.items()})
                return cls(open_sandbox, sandbox, await sandbox.snapshot())
        except BaseException:
            await sandbox.close()
            raise

    @property
    def snapshot(self) -> str:
        return self._snapshot.id

    async def infos(self) -> tuple[FileInfo, ...]:
        return await self._recovering(lambda sandbox: sandbox.list())

    async def read(self, path: str) -> str:
        """Raises ``UnsafePath``, ``FileNotFoundError``, and ``ValueError`` for what is no text."""
        data = await self._recovering(lambda sandbox: sandbox.get(path, max_bytes=MAX_FILE_BYTES))
        return data.decode("utf-8")

    async def write(self, path: str, text: str, *, command: str) -> SandboxStep:
        """Raises ``UnsafePath``."""
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        step = SandboxStep(command=command, argv=(PUT, path), stdin_digest=digest)

        async def put(sandbox: Sandbox) -> SandboxStep:
            await sandbox.put({path: data})
            return await self._with_changes(sandbox, step)

        return await self._recovering(put)

    async def run(
        self, argv: Sequence[str], *, command: str, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> SandboxStep:
        """Run one program to its end, however it ends. Raises ``Died`` and ``EnvironmentBroken``."""

        async def execute(sandbox: Sandbox) -> SandboxStep:
            result = await sandbox.exec(argv, timeout_s=timeout_s, env=env)
            if result.status == "infra_error":
                raise EnvironmentBroken(f"the sandbox could not start a program: {result.detail[:200]}")
            step = _step_of(result, command, argv).model_copy(update={"env": dict(env or {})})
            return await self._with_changes(sandbox, step)

        return await self._recovering(execute)

    async def files(self, first: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
        """The text files by path, and the paths of what was left out: links, binary files, too large or
        too many. Those named in ``first`` are read first, so that no rubbish can crowd them out."""
        found: dict[str, str] = {}
        left_out: list[str] = []
        total = 0
        infos = sorted(await self.infos(), key=lambda info: (info.path not in first, info.path))
        for info in infos:
            if info.kind == "folder":
                continue
            if printable(info.path) != info.path:  # a name that is no text cannot be graded
                left_out.append(printable(info.path))
                continue
            large = info.bytes > MAX_FILE_BYTES or total + info.bytes > MAX_TOTAL_BYTES
            text = None
            if info.kind == "file" and not large and len(found) < MAX_FILES:
                text = await self._text(info.path)
            if text is None:
                left_out.append(info.path)
                continue
            found[info.path] = text
            total += info.bytes
        return found, left_out[:MAX_FILES]

    async def _text(self, path: str) -> str | None:
        try:
            return await self.read(path)
        except (ValueError, FileNotFoundError):
            return None

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._sandbox.close()

    async def _recovering(self, work: Callable[[Sandbox], Awaitable[Done]]) -> Done:
        """``work`` on the sandbox. Where the host's side fails, a fresh sandbox starts from the last
        snapshot and the work is done there, once. Raises ``Died`` and ``EnvironmentBroken``."""
        try:
            async with _either_side():
                return await work(self._sandbox)
        except EnvironmentBroken as broken:
            log.warning("a workspace is made again from its snapshot: %s", broken)
        async with _either_side():
            await self._sandbox.close()
            self._sandbox = await self._open_sandbox(self._sandbox.spec, self._snapshot)
            return await work(self._sandbox)

    async def _with_changes(self, sandbox: Sandbox, step: SandboxStep) -> SandboxStep:
        before, self._snapshot = self._snapshot, await sandbox.snapshot()
        found: tuple[FileChange, ...] = ()
        if before.id != self._snapshot.id:
            found = await asyncio.to_thread(changes, before, self._snapshot)
        return step.model_copy(update={"changes": found, "snapshot": self._snapshot.id})


def died_step(command: str, why: str) -> SandboxStep:
    return SandboxStep(command=command, status="signal", detail=f"The sandbox did not survive this: {why}")


def workspace_evidence(files: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """What a grader gets: text files by path. ``status`` is "ok", or "died"."""
    return {"status": "ok", "files": dict(files), **more}


def _step_of(result: ExecResult, command: str, argv: Sequence[str]) -> SandboxStep:
    return SandboxStep(
        command=command,
        status=result.status,
        exit_code=result.exit_code,
        signal=result.signal,
        stdout=cut(result.stdout.text, _LOG_CHARS),
        stderr=cut(result.stderr.text, _LOG_CHARS),
        detail=result.detail,
        wall_s=result.wall_s,
        user_s=result.user_s,
        sys_s=result.sys_s,
        maxrss_bytes=result.maxrss_bytes,
        argv=tuple(argv),
        output_digest=output_digest(result),
    )


def printable(name: str) -> str:
    """A file's name for people and JSON: bytes that are no text are replaced."""
    return name.encode("utf-8", "replace").decode()


def cut(text: str, limit: int) -> str:
    """At most about ``limit`` characters: the start and the end, and how much was between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


@asynccontextmanager
async def _host_side() -> AsyncIterator[None]:
    """Before any code of the model ran: whatever fails is the host's."""
    try:
        yield
    except SandboxUnavailable as error:
        raise EnvironmentBroken(str(error)) from error
    except (SandboxGone, SnapshotBroken, OSError) as error:
        raise EnvironmentBroken(f"no workspace: {error}") from error


@asynccontextmanager
async def _either_side() -> AsyncIterator[None]:
    try:
        yield
    except SandboxGone as error:
        if error.after_code:
            raise Died(error.reason) from error
        raise EnvironmentBroken(f"the sandbox is gone: {error.reason}") from error
    except SandboxUnavailable as error:
        raise EnvironmentBroken(str(error)) from error
    except SnapshotBroken as error:
        # What the sandbox said about its files does not hold: only a program in it can bring that about.
        raise Died(str(error)) from error


__all__ = ["Died", "Open", "UnsafePath", "Workspace", "cut", "died_step", "printable", "workspace_evidence"]
