"""A sandbox that belongs to a pool: the same methods, and ``close`` gives it back.

``close`` does not wait for its end: the pool sees to that, and to those leases that are dropped without
``close``, which is noticed when they are collected.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence

from workers.sandbox.protocol import (
    MIB,
    ExecResult,
    FileInfo,
    Limits,
    OnOutput,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    Snapshot,
    Talk,
)


class Lease:
    """Satisfies ``Sandbox``. ``on_close`` is called by ``close``; ``on_lost`` is called from whichever thread
    the collector runs in, if that never happened."""

    def __init__(
        self, sandbox: Sandbox, *, on_close: Callable[[], None], on_lost: Callable[[], None]
    ) -> None:
        self._sandbox = sandbox
        self._closed = False
        self._on_close = on_close
        self._finalizer = weakref.finalize(self, on_lost)
        self._finalizer.atexit = False

    @property
    def id(self) -> str:
        return self._sandbox.id

    @property
    def spec(self) -> SandboxSpec:
        return self._sandbox.spec

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
        return await self._open.exec(
            argv,
            stdin=stdin,
            env=env,
            seed=seed,
            timeout_s=timeout_s,
            limits=limits,
            talk=talk,
            on_output=on_output,
        )

    async def put(self, files: Mapping[str, bytes]) -> None:
        await self._open.put(files)

    async def put_archive(self, data: bytes) -> None:
        await self._open.put_archive(data)

    async def get(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        return await self._open.get(path, max_bytes=max_bytes)

    async def list(self) -> tuple[FileInfo, ...]:
        return await self._open.list()

    async def snapshot(self) -> Snapshot:
        return await self._open.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        await self._open.restore(snapshot)

    async def reset(self) -> None:
        await self._open.reset()

    async def ping(self) -> None:
        await self._open.ping()

    async def close(self) -> None:
        self.release()

    def release(self) -> None:
        """The same, for whoever is not a coroutine; on the pool's thread."""
        self._closed = True
        self._finalizer.detach()
        self._on_close()

    @property
    def _open(self) -> Sandbox:
        if self._closed:
            raise SandboxGone("the sandbox was given back", after_code=False)
        return self._sandbox
