"""Doing a recorded step again, and saying precisely what came out differently.

A step repeats from the snapshot before it: the same program, stdin, environment and seed. Its
recorded end is that of ``SandboxStep``; the workspace is compared by the snapshot after it. A
``StepLog`` keeps the steps of one sandbox so that they survive the worker; ``fast_forward`` brings
a fresh sandbox to where the log ends.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts import ArtifactStore, get_store
from artifacts.store import ArtifactMissing
from domain.contracts.trajectory import FileChange, SandboxStep
from workers.sandbox import snapshot as snapshots
from workers.sandbox.diff import changes
from workers.sandbox.manifest import SnapshotBroken
from workers.sandbox.protocol import Backend, ExecResult, Sandbox, SandboxSpec, Snapshot

PUT = "put"  # argv (PUT, path): no program, a file was written


@dataclass(frozen=True)
class ReplayResult:
    """``differences`` are sentences, none when the step came out the same; ``changes`` lead from the
    workspace that was recorded to the one that came out."""

    step: SandboxStep
    differences: tuple[str, ...] = ()
    changes: tuple[FileChange, ...] = field(default=())

    @property
    def same(self) -> bool:
        return not self.differences


def output_digest(result: ExecResult) -> str:
    """sha256 of what was kept of both streams and of how much there was."""
    parts = []
    for stream in (result.stdout, result.stderr):
        parts += [
            b"%d %d %d\n" % (stream.total, len(stream.head), len(stream.tail)),
            stream.head,
            stream.tail,
        ]
    return hashlib.sha256(b"".join(parts)).hexdigest()


async def replay_step(
    backend: Backend,
    snapshot_before: Snapshot,
    step: SandboxStep,
    *,
    spec: SandboxSpec | None = None,
    store: ArtifactStore | None = None,
) -> ReplayResult:
    """Repeat ``step`` in a fresh sandbox. ``spec`` is the one it ran under. Raises ``SnapshotBroken``
    when content it needs is gone, ``ValueError`` for a step that ran nothing, ``SandboxUnavailable``,
    ``SandboxGone``."""
    found = store or get_store()
    sandbox = await backend.create(spec or SandboxSpec(), snapshot_before)
    try:
        again = await _repeat(sandbox, step, found)
    finally:
        await sandbox.close()
    return await asyncio.to_thread(_compare, step, again, found)


async def fast_forward(
    backend: Backend,
    steps: Sequence[SandboxStep],
    *,
    spec: SandboxSpec | None = None,
    start: Snapshot | None = None,
    store: ArtifactStore | None = None,
) -> tuple[Sandbox, tuple[ReplayResult, ...]]:
    """A sandbox as it was after ``steps`` (from ``start``, else an empty workspace): the last snapshot
    among them is restored, only the steps after it run again. The caller closes it."""
    found = store or get_store()
    last = max((at for at, step in enumerate(steps) if step.snapshot), default=-1)
    base = Snapshot(steps[last].snapshot) if last >= 0 else start
    sandbox = await backend.create(spec or SandboxSpec(), base)
    results: list[ReplayResult] = []
    try:
        for step in steps[last + 1 :]:
            if step.argv:
                again = await _repeat(sandbox, step, found)
                results.append(await asyncio.to_thread(_compare, step, again, found))
    except BaseException:
        await sandbox.close()
        raise
    return sandbox, tuple(results)


class StepLog:
    """Steps of one sandbox in order, each an artifact that names the one before; the reference
    ``steps/<name>`` names the last. Nothing is ever changed, only added."""

    def __init__(self, name: str, *, store: ArtifactStore | None = None) -> None:
        self._store = store or get_store()
        self._reference = f"steps/{name}"

    def append(self, step: SandboxStep) -> str:
        """Returns the digest of the log's new end. One writer at a time."""
        entry = {"before": self._store.ref_get(self._reference) or "", "step": step.model_dump(mode="json")}
        digest = self._store.put_json(entry)
        self._store.ref_set(self._reference, digest)
        return digest

    def steps(self) -> tuple[SandboxStep, ...]:
        """All of them, first to last. Raises ``ArtifactMissing``."""
        found: list[SandboxStep] = []
        digest = self._store.ref_get(self._reference) or ""
        while digest:
            entry: dict[str, Any] = self._store.get_json(digest)
            found.append(SandboxStep.model_validate(entry["step"]))
            digest = entry["before"]
        return tuple(reversed(found))


async def _repeat(sandbox: Sandbox, step: SandboxStep, store: ArtifactStore) -> SandboxStep:
    """The step as it came out this time, with the snapshot after it."""
    if not step.argv:
        raise ValueError(f"the step ran nothing: {step.command[:80]!r}")
    if step.argv[0] == PUT and len(step.argv) == 2:
        path = step.argv[1]
        await sandbox.put({path: await asyncio.to_thread(_written, step, path, store)})
        again = step
    else:
        stdin = await asyncio.to_thread(_content, step.stdin_digest, store) if step.stdin_digest else b""
        result = await sandbox.exec(step.argv, stdin=stdin, env=step.env, seed=step.seed)
        again = step.model_copy(
            update={
                "status": result.status,
                "exit_code": result.exit_code,
                "signal": result.signal,
                "stdout": result.stdout.text,
                "stderr": result.stderr.text,
                "detail": result.detail,
                "wall_s": result.wall_s,
                "user_s": result.user_s,
                "sys_s": result.sys_s,
                "maxrss_bytes": result.maxrss_bytes,
                "output_digest": output_digest(result),
            }
        )
    after = await sandbox.snapshot()
    return again.model_copy(update={"snapshot": after.id, "changes": ()})


def _compare(step: SandboxStep, again: SandboxStep, store: ArtifactStore) -> ReplayResult:
    said: list[str] = []
    for name, words in (("status", "The status"), ("exit_code", "The exit code"), ("signal", "The signal")):
        before, after = getattr(step, name), getattr(again, name)
        if before != after:
            said.append(f"{words} was {before}, now it is {after}.")
    if step.output_digest and step.output_digest != again.output_digest:
        said.append(_output_difference(step, again))
    different: tuple[FileChange, ...] = ()
    if step.snapshot and step.snapshot != again.snapshot:
        different = changes(Snapshot(step.snapshot), Snapshot(again.snapshot), store=store)
        names = ", ".join(change.path for change in different[:5]) or "folders"
        more = f" and {len(different) - 5} more" if len(different) > 5 else ""
        said.append(f"The workspace came out differently: {names}{more}.")
    return ReplayResult(again, tuple(said), different)


def _output_difference(step: SandboxStep, again: SandboxStep) -> str:
    for name in ("stdout", "stderr"):
        before, after = getattr(step, name).splitlines(), getattr(again, name).splitlines()
        for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
            if old != new:
                return f"{name} differs from line {number}: {old[:80]!r} became {new[:80]!r}."
        if len(before) != len(after):
            return f"{name} had {len(before)} lines, now it has {len(after)}."
    return "The output differs in bytes that are not shown."


def _written(step: SandboxStep, path: str, store: ArtifactStore) -> bytes:
    """What a put wrote: an artifact of its own, or a file of the snapshot after it."""
    if store.exists(step.stdin_digest):
        return _content(step.stdin_digest, store)
    return snapshots.read(Snapshot(step.snapshot), [path], store=store)[path]


def _content(digest: str, store: ArtifactStore) -> bytes:
    try:
        return store.get(digest)
    except ArtifactMissing as error:
        raise SnapshotBroken(f"what the step read is gone: {error}") from error
