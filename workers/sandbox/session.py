"""``AgentSandbox``: a sandbox as its users see it, over the stream to the agent inside it.

The same for every backend; what differs is a ``Channel``: the stream, a handle that ends all at
once, and what only the host can see. Time is measured here. Whatever the agent says is checked, and
an agent that does not answer loses its sandbox.
"""

import asyncio
import contextlib
import itertools
import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from artifacts import ArtifactStore
from workers.sandbox import snapshot as snapshots
from workers.sandbox.agent.files import DEEPEST, MOST
from workers.sandbox.capture import Capture
from workers.sandbox.manifest import Entry
from workers.sandbox.protocol import (
    MIB,
    ExecResult,
    FileInfo,
    Limits,
    OnOutput,
    OutputEvent,
    SandboxGone,
    SandboxSpec,
    Snapshot,
    Talk,
    UnsafePath,
)
from workers.sandbox.talk import Conversation
from workers.sandbox.verdict import Outcome, Reason, exec_result
from workers.sandbox.wire import Frame, Lost, Wire, code, number

_ANSWER_S = 60.0  # for anything but a program
_JUST_S = 1.0
_OBEY_S = 1.0  # for ending a program that is over its time
_LIST_BYTES = 64 * MIB
_LIST_LINE_BYTES = 1 * MIB
_FETCH_BYTES = 256 * MIB
_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch


class Channel(Protocol):
    """One sandbox from outside. ``bounds_memory``: its total memory is bounded (a cgroup)."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def bounds_memory(self) -> bool: ...

    @property
    def surely_lives(self) -> bool:
        """Its first process is there at this moment; False where that cannot be seen from here."""
        ...

    def mark(self) -> None:
        """A program is about to start: what is measured counts from now."""
        ...

    def oom_kills(self) -> int:
        """How often memory ran out since the mark."""
        ...

    def peak_bytes(self) -> int | None:
        """The most memory that all processes had since the mark; None where it cannot be known."""
        ...

    async def kill(self) -> None:
        """End every process at once and let go of all that the host holds. Harmless twice."""
        ...


class AgentSandbox:
    """Satisfies ``Sandbox``, and ``snapshot.Workspace``. ``environment`` is what every program gets."""

    def __init__(
        self,
        channel: Channel,
        spec: SandboxSpec,
        *,
        environment: Mapping[str, str],
        store: ArtifactStore | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.spec = spec
        self._channel = channel
        self._environment = {**environment, **dict(spec.env)}
        self._store = store
        self._wire = Wire(channel.reader, channel.writer)
        self._numbers = itertools.count(1)
        self._ran_code = False
        self._gone = ""
        self._heard_at = time.monotonic()
        self._base: Snapshot | None = None
        self._last: Snapshot | None = None

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
        self._check_open()
        bounds = _tighter(self.spec.limits, limits) if limits else self.spec.limits
        environment = {**self._environment, "PYTHONHASHSEED": str(seed), "FLYWHEEL_SEED": str(seed)}
        environment.update(env or {})
        words = json.dumps({"argv": _argv(argv), "env": environment}).encode()
        run = _Run(self._wire, next(self._numbers), bounds, on_output)
        request = {
            "op": "exec",
            "id": run.id,
            "words": len(words),
            "talk": talk is not None,
            "output": bounds.output_bytes,
            "limits": self._numbers_of(bounds),
        }
        self._channel.mark()
        run.begin(talk)
        try:
            await self._run(run, request, words + stdin, bounds.wall_s if timeout_s is None else timeout_s)
        except BaseException:
            await self._lose("the caller left while a program ran")
            raise
        finally:
            if run.conversation is not None:
                await run.conversation.stop()
        self._ran_code = True
        outcome = run.outcome
        outcome.oom_kills = self._channel.oom_kills()
        peak = self._channel.peak_bytes()
        outcome.maxrss_bytes = max(peak or 0, outcome.maxrss_bytes or 0) or None
        if outcome.lost:
            await self._lose(outcome.lost)
        elif run.conversation is not None:
            await run.conversation.over()
        return exec_result(outcome, bounds)

    async def put(self, files: Mapping[str, bytes]) -> None:
        words = json.dumps([[path, len(content)] for path, content in files.items()]).encode()
        await self._ask("put", b"".join((words, *files.values())), words=len(words))

    async def put_archive(self, data: bytes) -> None:
        await self._ask("put_archive", data)

    async def get(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        return await self._ask("get", json.dumps(path).encode(), most=max_bytes, accept=max_bytes)

    async def list(self) -> tuple[FileInfo, ...]:
        return tuple(
            FileInfo(entry.path, entry.kind, entry.bytes, entry.digest) for entry in await self.scan()
        )

    async def snapshot(self) -> Snapshot:
        self._last = await snapshots.take(self, parent=self._last, store=self._store)
        return self._last

    async def restore(self, snapshot: Snapshot) -> None:
        await snapshots.restore(self, snapshot, store=self._store)
        self._last = snapshot

    async def begin_with(self, base: Snapshot) -> None:
        """The workspace of ``base`` is what ``reset`` comes back to."""
        await self.restore(base)
        self._base = base

    async def reset(self) -> None:
        await self._ask("reset")
        self._last = None
        if self._base is not None:
            await self.restore(self._base)

    async def ping(self) -> None:
        """Does it still answer? One that has just done so, and lives, is not asked again."""
        self._check_open()
        if time.monotonic() - self._heard_at > _JUST_S or not self._channel.surely_lives:
            await self._ask("ping")

    async def close(self) -> None:
        self._gone = self._gone or "the sandbox is closed"
        await self._channel.kill()

    async def scan(self) -> Sequence[Entry]:
        data = await self._ask("list", accept=_LIST_BYTES)
        entries: list[Entry] = []
        try:
            for line in data.split(b"\n"):
                if line:
                    entries += map(_entry, _rows(line))
                if len(entries) > MOST:
                    raise ValueError("too much")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise await self._lost(f"the sandbox listed nonsense ({error})") from error
        return sorted(entries, key=lambda entry: entry.path)

    async def fetch(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        asked = json.dumps(list(paths)).encode()
        data = memoryview(await self._ask("fetch", asked, most=_FETCH_BYTES, accept=_FETCH_BYTES * 2))
        found: dict[str, bytes] = {}
        at = 0
        for path in paths:
            end = bytes(data[at : at + 20]).find(b"\n")
            length = bytes(data[at : at + end]) if end > 0 else b""
            if not length.isdigit() or at + end + 1 + int(length) > len(data):
                raise await self._lost("the sandbox gave other files than those asked for")
            at += end + 1
            found[path] = bytes(data[at : at + int(length)])
            at += int(length)
        return found

    async def apply(self, remove: Sequence[str], write: Sequence[tuple[Entry, bytes | None]]) -> None:
        rows = [
            [entry.path, entry.kind, entry.mode, entry.target, None if content is None else len(content)]
            for entry, content in write
        ]
        words = json.dumps({"remove": list(remove), "write": rows}).encode()
        contents = (content for _, content in write if content is not None)
        await self._ask("apply", b"".join((words, *contents)), words=len(words))

    async def _run(self, run: "_Run", request: dict[str, Any], body: bytes, timeout_s: float) -> None:
        """Raises ``SandboxGone`` when the program was never started."""
        began = time.perf_counter()
        try:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._wire.ask(request, body)
                    await run.until_done()
            except TimeoutError:
                run.end("timeout")
                async with asyncio.timeout(_OBEY_S):
                    await run.until_done()
        except TimeoutError:
            run.outcome.lost = "it did not stop when told to"
        except Lost as lost:
            if not run.started:
                raise await self._lost(str(lost)) from lost
            run.outcome.lost = str(lost)
        run.outcome.wall_s = time.perf_counter() - began
        run.outcome.stdout, run.outcome.stderr = (capture.result() for capture in run.captures.values())

    async def _ask(self, op: str, body: bytes = b"", *, accept: int = 0, **fields: int) -> bytes:
        """One request and the data of its answer, at most ``accept`` bytes of it."""
        self._check_open()
        id = next(self._numbers)
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._wire.ask({"op": op, "id": id, **fields}, body)
                return await self._answer(id, accept)
        except Lost as lost:
            raise await self._lost(str(lost)) from lost
        except TimeoutError as error:
            raise await self._lost(f"the sandbox did not answer within {_ANSWER_S:.0f} s") from error
        except asyncio.CancelledError:
            await self._lose("the caller left in the middle of an answer")
            raise

    async def _answer(self, id: int, accept: int) -> bytes:
        data: list[bytes] = []
        left = accept
        while True:
            frame = await self._wire.frame()
            if frame.header.get("id") != id:
                raise Lost("the sandbox answered what was not asked")
            if frame.kind == "done":
                self._heard_at = time.monotonic()
                return b"".join(data)
            if frame.kind == "error":
                raise _error(frame)
            left -= len(frame.body)
            if frame.kind != "data" or left < 0:
                raise Lost("the sandbox answered with something else")
            data.append(frame.body)

    def _numbers_of(self, limits: Limits) -> dict[str, int]:
        # With a cgroup the sum is bounded; address space then only stops the absurd.
        address = limits.memory_bytes * (4 if self._channel.bounds_memory else 1) + 128 * MIB
        return {
            "cpu": limits.cpu_s,
            "address": address,
            "files": limits.open_files,
            "bytes": limits.file_bytes,
            "stack": limits.stack_bytes,
            "processes": limits.processes,
        }

    def _check_open(self) -> None:
        if self._gone:
            raise SandboxGone(self._gone, after_code=self._ran_code)

    async def _lose(self, reason: str) -> None:
        self._gone = self._gone or reason
        await self._channel.kill()

    async def _lost(self, reason: str) -> SandboxGone:
        await self._lose(reason)
        return SandboxGone(reason, after_code=self._ran_code)


class _Run:
    """One program while it runs."""

    def __init__(self, wire: Wire, id: int, limits: Limits, on_output: OnOutput | None) -> None:
        self.id = id
        self.started = False
        self.outcome = Outcome()
        self.conversation: Conversation | None = None
        self.captures = {
            name: Capture(cap=limits.output_bytes, keep=limits.keep_bytes) for name in ("out", "err")
        }
        self._wire = wire
        self._on_output = on_output

    def begin(self, talk: Talk | None) -> None:
        if talk is not None:
            self.conversation = Conversation(talk, self._wire, self.id, lambda: self.end("finished"))

    def end(self, reason: Reason) -> None:
        """Ask the agent to end the program."""
        self.outcome.reason = self.outcome.reason or reason
        with contextlib.suppress(RuntimeError):
            self._wire.say({"op": "kill", "id": self.id})

    async def until_done(self) -> None:
        """Raises ``Lost``."""
        while True:
            frame = await self._wire.frame()
            if frame.header.get("id") != self.id:
                raise Lost("the sandbox answered what was not asked")
            if frame.kind == "done":
                return self._done(frame.header)
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.kind == "starting":
            self.started = True
        elif frame.kind in ("out", "err"):
            self._output(frame.kind, frame.body)
        elif frame.kind == "talk" and self.conversation is not None:
            self.conversation.heard(frame.body)
        elif frame.kind == "talk_end" and self.conversation is not None:
            self.conversation.hung_up()
        elif frame.kind == "error":
            raise Lost(f"the program could not be started ({str(frame.header.get('text'))[:200]})")
        else:
            raise Lost("the sandbox answered with something else")

    def _output(self, name: str, data: bytes) -> None:
        capture = self.captures[name]
        if capture.over:
            return  # it was told to stop
        capture.add(data)
        if self._on_output is not None:
            self._on_output(OutputEvent("stdout" if name == "out" else "stderr", data))
        if capture.over:
            self.end("output_limit")

    def _done(self, header: dict[str, Any]) -> None:
        ends = code(header, "exit", 255), code(header, "signal", 64)
        times = number(header, "user"), number(header, "system")
        largest = int(number(header, "largest"))
        # Only when all of it holds is any of it believed.
        self.outcome.code, self.outcome.killed_by = ends
        self.outcome.user_s, self.outcome.sys_s = times
        self.outcome.maxrss_bytes = largest or None


def _tighter(most: Limits, asked: Limits) -> Limits:
    names = most.__dataclass_fields__
    return replace(most, **{name: min(getattr(most, name), getattr(asked, name)) for name in names})


def _argv(argv: Sequence[str]) -> Iterable[str]:
    words = list(argv)
    if not words or any("\0" in word for word in words):
        raise ValueError("a command line is one word or more, without zero bytes")
    return words


def _error(frame: Frame) -> Exception:
    kind, text = frame.header.get("error"), str(frame.header.get("text", ""))[:500]
    if kind == "unsafe":
        return UnsafePath(text)
    if kind == "missing":
        return FileNotFoundError(text)
    if kind == "value":
        return ValueError(text)
    return Lost(f"the sandbox failed: {text}")


def _rows(line: bytes) -> list[Any]:
    """Raises ``ValueError`` for a line that no honest agent writes: it would become large when parsed."""
    rows = json.loads(line) if len(line) <= _LIST_LINE_BYTES else None
    if not isinstance(rows, list):
        raise ValueError("a line")
    return rows


def _entry(row: dict[str, Any]) -> Entry:
    """Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what no honest agent lists."""
    path, kind, mode = row["path"], row["kind"], row["mode"]
    if not isinstance(path, str):
        raise TypeError("a path")
    inside = f"/{path}/"
    if path.count("/") >= DEEPEST or any(odd in inside for odd in ("//", "/./", "/../", "\0")):
        raise ValueError("a path")
    if type(mode) is not int or not 0 <= mode <= 0o777:
        raise ValueError("a mode")
    if kind == "folder":
        return Entry(path, "folder", mode)
    if kind == "link" and isinstance(row["target"], str):
        return Entry(path, "link", target=row["target"])
    if kind == "file" and type(row["bytes"]) is int and row["bytes"] >= 0 and _DIGEST(row["digest"]):
        return Entry(path, "file", mode, row["bytes"], row["digest"])
    raise ValueError("an entry")
