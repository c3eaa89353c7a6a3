"""The backend for Docker hosts: one hardened container for each sandbox, the agent as its first process.

The agent speaks over the attached stream, because a step over it costs a fiftieth of ``docker exec``.
A container lives as long as that stream: when the worker is gone the agent reads its end and leaves.
"""

import asyncio
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from workers.sandbox.agent_backend import AgentBackend
from workers.sandbox.channel import READY_S, NotBuilt
from workers.sandbox.docker.channel import ContainerChannel, attach, memory_group
from workers.sandbox.docker.container import (
    LABEL,
    OWNER,
    WORKSPACE,
    fresh_uid,
    host_config,
    is_left_behind,
    labels,
)
from workers.sandbox.docker.engine import ENGINE_ERRORS, Engine, remove_container
from workers.sandbox.docker.image import container_image, program_environment, start_of
from workers.sandbox.docker.probe import lacking, not_in_force
from workers.sandbox.docker.settings import DockerSettings
from workers.sandbox.protocol import (
    Capabilities,
    ExecResult,
    Limits,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
)
from workers.sandbox.seccomp import UnknownArchitecture, filter_program
from workers.sandbox.session import AgentSandbox
from workers.sandbox.wire import Lost, Wire

_FIX = "Look at the engine's log, and whether its host has memory, disk and processes left."
_REAP_S = 300.0  # what others left is looked for at the start, then this often
_ATTACH = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
# The usual seed is there already; symbols are looked up once, not again in every fork.
_FOR_THE_AGENT = {"FLYWHEEL_SEED": "0", "LD_BIND_NOW": "1"}
_OOM = ("cat", "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


class DockerBackend(AgentBackend):
    """One engine. Images are made on it on first use; blocking calls run on a few threads."""

    name = "docker"

    def __init__(self, settings: DockerSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or DockerSettings()
        self._engine = Engine(self.settings)
        self._reaped = -math.inf

    async def reap(self, owner: str = "") -> int:
        """Also what other workers of the same owner left on this engine: their containers end with
        them, and are removed here."""
        return await self._engine.call(self._reap, owner or self.settings.owner)

    def close(self) -> None:
        """Let go of the engine; its sandboxes are closed by those who have them."""
        self._engine.close()

    async def _create(self, spec: SandboxSpec) -> "DockerSandbox":
        """Raises ``SandboxUnavailable``; ``NotBuilt`` for what may go better next time."""
        environment = await self._engine.call(program_environment, self._engine, spec.image)
        channel = None
        try:
            channel = await self._start(spec, environment)
            async with asyncio.timeout(READY_S):
                hello = await Wire(channel.reader, channel.writer).frame()
            if hello.kind != "ready":
                raise Lost("the agent began with something else")
        except BaseException as error:
            said = channel.said if channel is not None else ""
            if channel is not None:
                await channel.kill()
            if isinstance(error, TimeoutError):
                raise NotBuilt(f"The container was not ready within {READY_S:.0f} s.", _FIX) from error
            if isinstance(error, (Lost, *ENGINE_ERRORS)):
                reason = f"The container could not be started ({said[-300:] or error})."
                raise NotBuilt(reason, _FIX) from error
            raise
        return DockerSandbox(channel, spec, environment=environment)

    async def _start(self, spec: SandboxSpec, environment: Mapping[str, str]) -> ContainerChannel:
        """The container, attached to and started. When this is cancelled or fails nothing is left."""
        made = asyncio.ensure_future(self._engine.call(self._make, spec, environment))
        try:
            id, attached = await asyncio.shield(made)
        except asyncio.CancelledError:
            id, attached = await made
            attached.close()
            await self._engine.call(remove_container, self._engine.api, id)
            raise
        channel = ContainerChannel(self._engine, id, await attach(attached))
        try:
            channel.group = await self._engine.call(self._run_container, id)
            if channel.group is not None:
                channel.group.keep_open()
        except BaseException:
            await channel.kill()
            raise
        return channel

    def _make(self, spec: SandboxSpec, environment: Mapping[str, str]) -> tuple[str, Any]:
        api, uid = self._engine.api, fresh_uid()
        if time.monotonic() - self._reaped > _REAP_S:
            self._reap(self.settings.owner)
        id = api.create_container(
            container_image(self._engine, spec.image),
            entrypoint=[],
            command=[*start_of(self._engine), json.dumps(_options(spec))],
            environment={**environment, **_FOR_THE_AGENT},
            user=f"{uid}:{uid}",
            working_dir=WORKSPACE,
            stdin_open=True,
            tty=False,
            network_disabled=True,
            labels=labels(self.settings.owner, self.settings.ttl_s),
            host_config=host_config(api, self.settings, spec.limits, uid),
        )["Id"]
        try:
            return id, api.attach_socket(id, params=_ATTACH)
        except BaseException:
            remove_container(api, id)
            raise

    def _run_container(self, id: str) -> Any:
        self._engine.api.start(id)
        return memory_group(id, int(self._engine.api.inspect_container(id)["State"]["Pid"]))

    def _reap(self, owner: str) -> int:
        api, count = self._engine.api, 0
        self._reaped = time.monotonic()
        wanted = {"label": [f"{LABEL}=1", f"{OWNER}={owner}"]}
        for container in api.containers(all=True, filters=wanted):
            if is_left_behind(container, time.time()):
                count += remove_container(api, container["Id"])
        return count

    def _probe(self) -> Capabilities:
        with ThreadPoolExecutor(1) as thread:  # the caller's own may have a running loop
            return thread.submit(lambda: asyncio.run(self._look())).result()

    async def _look(self) -> Capabilities:
        try:
            filter_program()
        except UnknownArchitecture:
            reason = f"There is no system call filter for {platform.machine()}."
            return Capabilities(False, reason, "Use Docker hosts of x86_64 or aarch64.")
        engine = self._engine
        try:
            info = await engine.call(lambda: engine.api.info())
            if found := lacking(info, self.settings):
                return Capabilities(False, *found)
            sandbox = await self._create(SandboxSpec(limits=Limits(wall_s=30.0)))
            try:
                found = await not_in_force(sandbox)
            finally:
                await sandbox.close()
            if found:
                return Capabilities(False, *found)
        except (SandboxUnavailable, SandboxGone) as error:
            fix = error.fix if isinstance(error, SandboxUnavailable) else _FIX
            return Capabilities(False, error.reason, fix)
        except ENGINE_ERRORS as error:
            return Capabilities(False, f"The Docker engine failed ({error}).", _FIX)
        return Capabilities(True, cgroup="v2" if str(info.get("CgroupVersion")) == "2" else "v1")


class DockerSandbox(AgentSandbox):
    """What only the engine can tell is added to a result: that memory ran out."""

    def __init__(
        self, channel: ContainerChannel, spec: SandboxSpec, *, environment: Mapping[str, str]
    ) -> None:
        super().__init__(channel, spec, environment=environment)
        self._container = channel
        self._oom_kills = 0

    async def exec(self, argv: Sequence[str], **options: Any) -> ExecResult:
        result = await super().exec(argv, **options)
        ran_out = await self._ran_out()
        return replace(result, status="oom") if ran_out and result.status != "output_limit" else result

    async def _ran_out(self) -> bool:
        """Where the host's cgroups are out of sight, the container's own view of them is read by a
        program of its own, after all others have ended."""
        if self._container.ran_out_of_memory:
            return True
        if self._gone or self._container.group is not None:
            return False
        limits = replace(self.spec.limits, cpu_s=2)
        said = (await super().exec(_OOM, limits=limits, timeout_s=5.0)).stdout.text
        count = sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("oom_kill "))
        before, self._oom_kills = self._oom_kills, count
        return count > before


def _options(spec: SandboxSpec) -> dict[str, Any]:
    return {"bytes": spec.limits.workspace_bytes, "preimport": list(spec.preimport)}
