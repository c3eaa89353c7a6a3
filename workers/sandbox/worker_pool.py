"""The one pool of a process, used from any thread and any event loop.

The pool lives on a thread of its own: sandboxes outlast the short event loops of batches, and the
thread that starts them never ends (the kernel ends a sandbox with the thread that started it).
``talk`` and ``on_output`` run in the caller's event loop.

FLYWHEEL_SANDBOX_MAX_LIVE  most sandboxes at once, default 256: an episode holds one, and judging it takes
                           up to two more
FLYWHEEL_SANDBOX_READY     kept ready for each specification in use, default 2
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from workers.sandbox.bridge import at_home
from workers.sandbox.choice import sandbox_backend
from workers.sandbox.lease import Lease
from workers.sandbox.pool import SandboxPool
from workers.sandbox.pool_stats import PoolStats
from workers.sandbox.protocol import (
    MIB,
    Backend,
    Capabilities,
    ExecResult,
    FileInfo,
    Limits,
    OnOutput,
    OutputEvent,
    Sandbox,
    SandboxSpec,
    Snapshot,
    Talk,
)

T = TypeVar("T")

_CLOSE_S = 10.0


class WorkerPool:
    """Satisfies ``Backend``. ``make`` is called once, on the pool's thread."""

    def __init__(self, backend: Backend, make: Callable[[Backend], SandboxPool] = SandboxPool) -> None:
        self._backend = backend
        self._make = make
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: SandboxPool | None = None

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def interpreter(self) -> tuple[str, ...]:
        return self._backend.interpreter

    def probe(self) -> Capabilities:
        return self._ask(SandboxPool.probe)

    @asynccontextmanager
    async def acquire(
        self, spec: SandboxSpec, *, base: Snapshot | None = None, deadline_s: float | None = None
    ) -> AsyncIterator[Sandbox]:
        """See ``SandboxPool.acquire``."""
        owner = asyncio.current_task()
        sandbox = await self._create(spec, base, deadline_s=deadline_s, owner=owner)
        try:
            yield sandbox
        finally:
            await sandbox.close()

    async def create(
        self, spec: SandboxSpec, base: Snapshot | None = None, *, deadline_s: float | None = None
    ) -> Sandbox:
        """See ``SandboxPool.create``."""
        return await self._create(spec, base, deadline_s=deadline_s, owner=None)

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
        """See ``SandboxPool.run``."""
        loop, pool = self._started()
        spoken = at_home(talk, asyncio.get_running_loop()) if talk is not None else None
        return await _across(
            loop, pool.run(spec, argv, stdin=stdin, files=files, timeout_s=timeout_s, talk=spoken)
        )

    async def reap(self, owner: str = "") -> int:
        loop, pool = self._started()
        return await _across(loop, pool.reap(owner))

    def stats(self) -> PoolStats:
        return self._ask(SandboxPool.stats) if self._pool is not None else PoolStats()

    def close(self) -> None:
        """End every sandbox, the thread, and what the backend keeps warm. The next use starts anew."""
        with self._lock:
            loop, pool, thread = self._loop, self._pool, self._thread
            self._loop = self._pool = self._thread = None
        if loop is None or pool is None or thread is None:
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(pool.close(), loop).result(_CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSE_S)
        if (close := getattr(self._backend, "close", None)) is not None:
            close()

    def forget(self) -> None:
        """In a child after a fork, where the thread is gone and the sandboxes are the parent's."""
        self._lock = threading.Lock()
        self._loop = self._pool = self._thread = None

    def _ask(self, question: Callable[[SandboxPool], T]) -> T:
        """Ask the pool on its own thread, and wait: not for that thread itself."""

        async def answer() -> T:
            return question(pool)

        loop, pool = self._started()
        return asyncio.run_coroutine_threadsafe(answer(), loop).result()

    async def _create(
        self,
        spec: SandboxSpec,
        base: Snapshot | None,
        *,
        deadline_s: float | None,
        owner: "asyncio.Task[Any] | None",
    ) -> "_Remote":
        loop, pool = self._started()
        home = asyncio.get_running_loop()
        creating = pool.create(spec, base, deadline_s=deadline_s, owner=owner, home=home)
        return _Remote(loop, await _across(loop, creating))

    def _started(self) -> tuple[asyncio.AbstractEventLoop, SandboxPool]:
        with self._lock:
            if self._loop is None or self._pool is None:
                self._loop, self._pool = asyncio.new_event_loop(), self._make(self._backend)
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="sandbox-pool", daemon=True
                )
                self._thread.start()
            return self._loop, self._pool


class _Remote:
    """A lease of the pool's loop, used from another one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lease: Lease) -> None:
        self._loop = loop
        self._lease = lease

    @property
    def id(self) -> str:
        return self._lease.id

    @property
    def spec(self) -> SandboxSpec:
        return self._lease.spec

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
        return await self._across(
            self._lease.exec(
                argv,
                stdin=stdin,
                env=env,
                seed=seed,
                timeout_s=timeout_s,
                limits=limits,
                talk=at_home(talk, asyncio.get_running_loop()) if talk is not None else None,
                on_output=_heard_at_home(on_output) if on_output is not None else None,
            )
        )

    async def put(self, files: Mapping[str, bytes]) -> None:
        await self._across(self._lease.put(files))

    async def put_archive(self, data: bytes) -> None:
        await self._across(self._lease.put_archive(data))

    async def get(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        return await self._across(self._lease.get(path, max_bytes=max_bytes))

    async def list(self) -> tuple[FileInfo, ...]:
        return await self._across(self._lease.list())

    async def snapshot(self) -> Snapshot:
        return await self._across(self._lease.snapshot())

    async def restore(self, snapshot: Snapshot) -> None:
        await self._across(self._lease.restore(snapshot))

    async def reset(self) -> None:
        await self._across(self._lease.reset())

    async def ping(self) -> None:
        await self._across(self._lease.ping())

    async def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lease.release)

    async def _across(self, work: Coroutine[Any, Any, T]) -> T:
        return await _across(self._loop, work)


async def _across(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, run in ``loop``. A cancelled caller waits until the work has ended too,
    so that what it holds is released in order."""
    if loop is asyncio.get_running_loop():
        return await work
    ended: Future[asyncio.Task[T]] = Future()
    begun: list[asyncio.Task[T]] = []

    def begin() -> None:
        begun.append(loop.create_task(work))
        begun[0].add_done_callback(ended.set_result)

    loop.call_soon_threadsafe(begin)
    here = asyncio.wrap_future(ended)
    try:
        return (await asyncio.shield(here)).result()
    except asyncio.CancelledError:
        loop.call_soon_threadsafe(lambda: begun[0].cancel())
        await asyncio.wait([here], timeout=_CLOSE_S)
        if here.done() and not (task := here.result()).cancelled() and task.exception() is None:
            made = task.result()
            if isinstance(made, Lease):  # made in the very moment in which the caller left
                loop.call_soon_threadsafe(made.release)
        raise


def _heard_at_home(on_output: OnOutput) -> OnOutput:
    home = asyncio.get_running_loop()

    def hear(event: OutputEvent) -> None:
        home.call_soon_threadsafe(on_output, event)

    return hear


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


_pool: WorkerPool | None = None
_lock = threading.Lock()


def worker_pool() -> WorkerPool:
    """The pool of this process, over the backend that ``choice.py`` names. Starts nothing yet."""
    global _pool
    with _lock:
        if _pool is None:
            live = int(os.environ.get("FLYWHEEL_SANDBOX_MAX_LIVE") or 256)
            ready = int(os.environ.get("FLYWHEEL_SANDBOX_READY") or 2)
            _pool = WorkerPool(
                sandbox_backend(), lambda backend: SandboxPool(backend, max_live=live, min_ready=ready)
            )
            atexit.register(_pool.close)
            os.register_at_fork(after_in_child=_pool.forget)
        return _pool
