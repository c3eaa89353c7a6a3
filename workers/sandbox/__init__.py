"""Untrusted programs run here and nowhere else."""

from workers.sandbox.protocol import (
    Backend,
    Capabilities,
    Captured,
    ExecResult,
    Limits,
    SandboxSpec,
    SandboxUnavailable,
    Status,
    Talk,
)

__all__ = [
    "Backend",
    "Capabilities",
    "Captured",
    "ExecResult",
    "Limits",
    "SandboxSpec",
    "SandboxUnavailable",
    "Status",
    "Talk",
]
