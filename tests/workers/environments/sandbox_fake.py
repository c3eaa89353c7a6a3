"""A sandbox that only remembers its files and runs what a test tells it to."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from artifacts import ArtifactStore
from workers.sandbox import snapshot as snapshots
from workers.sandbox.manifest import Entry
from workers.sandbox.protocol import (
    Captured,
    ExecResult,
    FileInfo,
    SandboxGone,
    SandboxSpec,
    Snapshot,
    UnsafePath,
)

Program = Callable[[Sequence[str], dict[str, bytes]], ExecResult]


def said(text: str, *, exit_code: int = 0) -> ExecResult:
    """A program that wrote ``text`` and ended."""
    data = text.encode()
    status = "ok" if exit_code == 0 else "nonzero"
    return ExecResult(status, exit_code=exit_code, stdout=Captured(head=data, total=len(data)))


class FakeSandbox:
    """``program`` plays every program; ``dies`` makes the next call end the sandbox."""

    def __init__(
        self,
        store: ArtifactStore,
        program: Program = lambda argv, files: said(""),
        base: Snapshot | None = None,
    ) -> None:
        self.store, self.program = store, program
        self.spec = SandboxSpec()
        self.id = "fake"
        self.kept: dict[str, bytes] = {}
        if base is not None:
            entries = snapshots.load(base, store=store).manifest.entries
            self.kept = snapshots.read(base, entries, store=store)
        self.ran: list[tuple[str, ...]] = []
        self.dies = ""  # "before" or "after" the code ran
        self.closed = 0

    async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
        self._alive()
        self.ran.append(tuple(argv))
        return self.program(argv, self.kept)

    async def put(self, files: Mapping[str, bytes]) -> None:
        self._alive()
        for path in files:
            if path.startswith("/") or ".." in path.split("/"):
                raise UnsafePath(f"{path!r} leaves the workspace")
        self.kept |= files

    async def get(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        self._alive()
        if path not in self.kept:
            raise FileNotFoundError(path)
        if len(self.kept[path]) > max_bytes:
            raise ValueError(f"{path!r} is larger than {max_bytes} bytes")
        return self.kept[path]

    async def list(self) -> tuple[FileInfo, ...]:
        self._alive()
        return tuple(FileInfo(e.path, "file", e.bytes, e.digest) for e in await self.scan())

    async def snapshot(self) -> Snapshot:
        self._alive()
        return await snapshots.take(self, store=self.store)

    async def close(self) -> None:
        self.closed += 1

    async def scan(self) -> Sequence[Entry]:
        return [
            Entry(path, "file", 0o644, len(data), hashlib.sha256(data).hexdigest())
            for path, data in sorted(self.kept.items())
        ]

    async def fetch(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return {path: self.kept[path] for path in paths}

    def _alive(self) -> None:
        if self.dies:
            raise SandboxGone("the agent is gone", after_code=self.dies == "after")
