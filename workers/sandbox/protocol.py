"""What every sandbox backend promises: the specification, the result, the capabilities.

A backend refuses to degrade. Where one of the protections cannot be had it raises
``SandboxUnavailable`` with the reason and the fix; it never runs a program with less.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

MIB = 1 << 20

Status = Literal["ok", "nonzero", "signal", "timeout", "cpu", "oom", "output_limit", "infra_error"]

# A conversation with the program over a stream of its own (in the program: the descriptor whose
# number is in FLYWHEEL_CHANNEL). When it returns, the program is ended and counts as "ok".
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Per program. ``cpu_s`` and ``address_bytes`` hold for each process of the tree;
    ``memory_bytes`` holds for the whole tree where the backend has a cgroup (see
    ``Capabilities.cgroup``), and for each process where it has none. ``output_bytes`` holds for
    stdout and stderr each; ``keep_bytes`` of it is kept, half from the start, half from the end.
    """

    wall_s: float = 10.0
    cpu_s: int = 10
    memory_bytes: int = 512 * MIB
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 64 * MIB
    workspace_bytes: int = 64 * MIB
    stack_bytes: int = 8 * MIB
    output_bytes: int = 1 * MIB
    keep_bytes: int = 64 * 1024


@dataclass(frozen=True)
class SandboxSpec:
    """Frozen and hashable: it is the pool's key. ``image`` names an environment image (see
    ``images.py``); ``preimport`` are modules that the warm interpreter has imported already, so that
    Python code which needs them starts at once. Seeds go with ``exec``, not here."""

    image: str = "python"
    limits: Limits = field(default_factory=Limits)
    env: tuple[tuple[str, str], ...] = ()
    preimport: tuple[str, ...] = ()


@dataclass(frozen=True)
class Captured:
    """Bytes of one output stream: the start, the end, and how many there were in all."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0

    @property
    def data(self) -> bytes:
        """What was kept; a gap is marked in words."""
        left_out = self.total - len(self.head) - len(self.tail)
        gap = b"\n[%d bytes left out]\n" % left_out if left_out else b""
        return self.head + gap + self.tail

    @property
    def text(self) -> str:
        """For display only: decoded last, so that a character split over two writes is whole."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class ExecResult:
    """How one program ended. Times in seconds; ``user_s`` and ``sys_s`` are sums over the tree,
    ``maxrss_bytes`` is the peak of the whole tree where there is a cgroup, else of its largest process,
    and None where it stayed below the worker's own and so cannot be told. ``infra_error`` means that
    the host knows that the program never started; whatever happens after that is the program's own
    failure. ``exit_code`` 128 + n is read as signal n, as a shell does.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    wall_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    maxrss_bytes: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class Capabilities:
    """Whether programs can run here. ``cgroup`` says how total memory is bounded; with ``"none"``
    only each process is. ``notes`` name what is weaker than it could be."""

    available: bool
    reason: str = ""
    fix: str = ""
    cgroup: Literal["v1", "v2", "none"] = "none"
    notes: tuple[str, ...] = ()


class SandboxUnavailable(RuntimeError):
    """No sandbox can be had. ``reason`` and ``fix`` are sentences for a person."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(f"{reason} {fix}".strip())
        self.reason = reason
        self.fix = fix


class SandboxGone(RuntimeError):
    """The sandbox is no longer there. ``after_code`` tells whether a program had been started in it:
    if so, what happened counts as that program's own doing, never as infrastructure."""

    def __init__(self, reason: str, *, after_code: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_code = after_code


class UnsafePath(ValueError):
    """A path or an archive entry that would leave the workspace."""


@dataclass(frozen=True)
class FileInfo:
    """One entry of the workspace; ``path`` is relative. ``digest`` (sha256) is of regular files."""

    path: str
    kind: Literal["file", "folder", "link"]
    bytes: int = 0
    digest: str = ""


@dataclass(frozen=True)
class Snapshot:
    """The content of a workspace: an immutable manifest in the artifact store. The same content has
    the same ``id`` on every host (sha256 of the manifest). ``parent`` is the snapshot it was taken
    after, "" for none; it is no part of the id."""

    id: str
    parent: str = ""


@dataclass(frozen=True)
class OutputEvent:
    """A piece of output while the program still runs."""

    stream: Literal["stdout", "stderr"]
    data: bytes


OnOutput = Callable[[OutputEvent], None]


class Sandbox(Protocol):
    """One live sandbox: a workspace and the programs run in it, one after another. All file access
    happens inside, through the agent; the host never opens a path that the sandbox can write. Methods
    raise ``SandboxGone`` when it has died. Use it from one task at a time."""

    @property
    def id(self) -> str: ...

    @property
    def spec(self) -> SandboxSpec: ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        seed: int = 0,
        timeout_s: float | None = None,
        limits: Limits | None = None,
        talk: Talk | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run one program with the workspace as its folder; when it returns, every process that the
        program started has been killed. ``limits`` may only be tighter than the spec's. ``seed`` is
        PYTHONHASHSEED and FLYWHEEL_SEED. ``argv[0] == "python"`` is the image's interpreter, isolated
        (``-s -S -P -B`` and the image's packages); where the backend keeps one warm it is forked, not
        started, and behaves the same (``__main__``, ``sys.argv``, ``atexit``, pickling)."""
        ...

    async def put(self, files: Mapping[str, bytes]) -> None:
        """Write files below the workspace, with the folders they need. Nothing is followed out of it:
        raises ``UnsafePath`` for absolute paths, ``..`` and paths through links, and then writes none."""
        ...

    async def put_archive(self, data: bytes) -> None:
        """Extract a tar (plain, gz, xz) or zip inside the sandbox, under its limits. Raises
        ``UnsafePath`` for entries that are absolute, leave the workspace, are links to the outside or
        devices, and ``ValueError`` for what is no archive or too large."""
        ...

    async def get(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        """One regular file. Raises ``UnsafePath``, ``FileNotFoundError``, or ``ValueError`` when it is
        larger than ``max_bytes`` or no regular file."""
        ...

    async def list(self) -> tuple[FileInfo, ...]:
        """All entries of the workspace in order of path, with digests; links are named, not followed."""
        ...

    async def snapshot(self) -> Snapshot: ...

    async def restore(self, snapshot: Snapshot) -> None:
        """Make the workspace what the snapshot holds; what is the same already is not written again."""
        ...

    async def reset(self) -> None:
        """The workspace as it was at ``create``, no process left."""
        ...

    async def ping(self) -> None:
        """Return when it answers; raises ``SandboxGone`` when it does not."""
        ...

    async def close(self) -> None:
        """End it and all that it holds. Harmless twice."""
        ...


class Backend(Protocol):
    """One way to have sandboxes. ``interpreter`` is the start of a command line that runs Python
    inside: isolated from the user's site, the working folder and the environment."""

    @property
    def name(self) -> str: ...

    @property
    def interpreter(self) -> tuple[str, ...]: ...

    def probe(self) -> Capabilities:
        """Try it for real, once; a success is remembered."""
        ...

    async def create(self, spec: SandboxSpec, base: Snapshot | None = None) -> Sandbox:
        """A fresh sandbox, its workspace empty or that of ``base``. Raises ``SandboxUnavailable``.
        A fork of a live sandbox is ``create(spec, await sandbox.snapshot())``."""
        ...

    async def reap(self, owner: str = "") -> int:
        """End what dead processes of ``owner`` ("": of this installation) left behind; how many."""
        ...

    async def run(
        self,
        spec: SandboxSpec,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        timeout_s: float | None = None,
        talk: Talk | None = None,
    ) -> ExecResult:
        """``create``, ``put``, ``exec``, ``close`` in one: a fresh sandbox for one program.
        ``timeout_s`` defaults to ``spec.limits.wall_s``. stdin is ``/dev/null`` when empty. Raises
        ``SandboxUnavailable``."""
        ...
