"""Where an environment's sandboxes come from in a worker process: its pool."""

from collections.abc import Mapping
from typing import Any

from workers.sandbox.protocol import ExecResult, Sandbox, SandboxSpec, Snapshot
from workers.sandbox.worker_pool import worker_pool

# An episode may wait in line for long: its own deadline ends it, not the pool's.
_PATIENCE_S = 600.0


async def open_sandbox(spec: SandboxSpec, base: Snapshot | None) -> Sandbox:
    """A fresh sandbox of this worker. Raises ``SandboxUnavailable``."""
    return await worker_pool().create(spec, base, deadline_s=_PATIENCE_S)


async def inspect_part(script: str) -> tuple[ExecResult | None, Mapping[str, Any]]:
    """The part of a script, made and measured. Raises ``SandboxUnavailable``."""
    from workers.collect.geometry import inspect_part as inspect  # numpy, only where parts are made

    built, report = await inspect(worker_pool(), script)
    return built.result, report
