"""What the backends have in common whose sandboxes are served by the agent: a probe that is remembered,
a sandbox that begins with a snapshot, one program in a fresh sandbox."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from workers.sandbox.channel import NotBuilt
from workers.sandbox.protocol import (
    Capabilities,
    ExecResult,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    Talk,
)
from workers.sandbox.session import AgentSandbox


class AgentBackend(ABC):
    """Satisfies ``Backend``, but for ``name`` and ``reap``."""

    interpreter = ("python",)

    def __init__(self) -> None:
        self._capabilities: Capabilities | None = None

    def probe(self) -> Capabilities:
        if self._capabilities is None:
            found = self._probe()
            if not found.available:
                return found
            self._capabilities = found
        return self._capabilities

    async def create(self, spec: SandboxSpec, base: Snapshot | None = None) -> AgentSandbox:
        if self._capabilities is None:
            capabilities = await asyncio.to_thread(self.probe)
            if not capabilities.available:
                raise SandboxUnavailable(capabilities.reason, capabilities.fix)
        sandbox = await self._create(spec)
        if base is not None:
            try:
                await sandbox.begin_with(base)
            except BaseException:
                await sandbox.close()
                raise
        return sandbox

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
        if sum(len(content) for content in (files or {}).values()) > spec.limits.workspace_bytes:
            raise ValueError("the files are larger than the workspace")
        try:
            sandbox = await self.create(spec)
        except NotBuilt as error:
            return ExecResult("infra_error", detail=str(error))
        try:
            if files:
                await sandbox.put(files)
            return await sandbox.exec(argv, stdin=stdin, timeout_s=timeout_s, talk=talk)
        except SandboxGone as gone:
            # Whatever happened after a program had begun is its own doing.
            return ExecResult("signal" if gone.after_code else "infra_error", detail=gone.reason)
        finally:
            await self._let_go(sandbox)

    async def _let_go(self, sandbox: AgentSandbox) -> None:
        """End a sandbox that served one program."""
        await sandbox.close()

    @abstractmethod
    def _probe(self) -> Capabilities:
        """Try it for real; may block."""

    @abstractmethod
    async def _create(self, spec: SandboxSpec) -> AgentSandbox:
        """Raises ``SandboxUnavailable``; ``NotBuilt`` for what may go better next time."""
