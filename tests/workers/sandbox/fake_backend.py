"""A backend without processes, for what a pool decides: it remembers what was made and ended."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.sandbox.protocol import (
    Capabilities,
    ExecResult,
    FileInfo,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    Talk,
)


class FakeSandbox:
    def __init__(self, backend: "FakeBackend", number: int, spec: SandboxSpec, base: str) -> None:
        self.backend, self.number, self.spec, self.base = backend, number, spec, base
        self.id = str(number)
        self.sick = False
        self.closed = 0

    async def ping(self) -> None:
        await asyncio.sleep(0)
        if self.sick or self.closed:
            raise SandboxGone("it is gone", after_code=False)

    async def exec(self, argv: Sequence[str], **_: Any) -> ExecResult:
        await asyncio.sleep(0)
        if self.sick or self.closed:
            raise SandboxGone("it is gone", after_code=False)
        return ExecResult("ok", exit_code=0)

    async def put(self, files: Mapping[str, bytes]) -> None: ...

    async def put_archive(self, data: bytes) -> None: ...

    async def get(self, path: str, *, max_bytes: int = 0) -> bytes:
        raise FileNotFoundError(path)

    async def list(self) -> tuple[FileInfo, ...]:
        return ()

    async def snapshot(self) -> Snapshot:
        return Snapshot("0" * 64)

    async def restore(self, snapshot: Snapshot) -> None: ...

    async def reset(self) -> None: ...

    async def close(self) -> None:
        await asyncio.sleep(self.backend.close_s)
        self.closed += 1


class FakeBackend:
    name = "fake"
    interpreter = ("python",)

    def __init__(self, *, create_s: float = 0.0, close_s: float = 0.0) -> None:
        self.create_s, self.close_s = create_s, close_s
        self.made: list[FakeSandbox] = []
        self.fails = 0
        self.on_made: Callable[[FakeSandbox], None] = lambda sandbox: None
        self._numbers = itertools.count(1)

    @property
    def open(self) -> list[FakeSandbox]:
        return [sandbox for sandbox in self.made if not sandbox.closed]

    def probe(self) -> Capabilities:
        return Capabilities(True)

    async def create(self, spec: SandboxSpec, base: Snapshot | None = None) -> FakeSandbox:
        await asyncio.sleep(self.create_s)
        if self.fails:
            self.fails -= 1
            raise SandboxUnavailable("no sandbox today.", "Wait.")
        sandbox = FakeSandbox(self, next(self._numbers), spec, base.id if base else "")
        self.made.append(sandbox)
        self.on_made(sandbox)
        return sandbox

    async def reap(self, owner: str = "") -> int:
        return 0

    async def run(
        self, spec: SandboxSpec, argv: Sequence[str], *, talk: Talk | None = None, **_: Any
    ) -> ExecResult:
        return await (await self.create(spec)).exec(argv)
