"""The embedded backend without a warm interpreter: one ``bwrap`` for each sandbox.

Slower by an interpreter's start, but it needs no namespaces within namespaces, which some hosts
refuse (AppArmor's rule for unprivileged programs). Used only where the operator names it.
"""

import asyncio
import json
import socket
import subprocess
import tempfile
from dataclasses import replace

from workers.sandbox.bubblewrap import BubblewrapBackend, image_of
from workers.sandbox.channel import HostChannel, NotBuilt, meet
from workers.sandbox.descriptors import Descriptors
from workers.sandbox.installation import sandbox_uid
from workers.sandbox.protocol import Capabilities, SandboxSpec
from workers.sandbox.refusals import explain
from workers.sandbox.root_view import AGENT, environment
from workers.sandbox.seats import joined
from workers.sandbox.session import AgentSandbox
from workers.sandbox.zygote import bwrap_options

_END_S = 5.0
_NOTES = (
    "Each sandbox starts an interpreter of its own: modules are never imported ahead.",
    "The number of empty files is bounded by the CPU limit and the memory limit only.",
)


class ColdBubblewrapBackend(BubblewrapBackend):
    """The same protections and results."""

    name = "bubblewrap-cold"

    def _found(self) -> Capabilities:
        found = super()._found()
        return replace(found, notes=(*found.notes, *_NOTES))

    async def _create(self, spec: SandboxSpec) -> AgentSandbox:
        image = image_of(spec)
        with tempfile.TemporaryFile() as said:
            ours, process = self._start(spec, said.fileno())
            try:
                channel = await meet(ours, None, lambda: _wait(process))
            except NotBuilt as error:
                said.seek(0)
                text = said.read(4096).decode("utf-8", "replace").strip()
                raise (NotBuilt(*explain(text)) if text else error) from error
        await self._bound(channel, spec)
        return AgentSandbox(channel, spec, environment=environment(self.python, image))

    def _start(self, spec: SandboxSpec, said: int) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
        """Raises ``NotBuilt``."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        uid = sandbox_uid()
        size = spec.limits.workspace_bytes
        number = str(theirs.fileno())
        asked = {"bytes": size, "hello": True, "moves": self.hierarchy is not None}
        try:
            with Descriptors() as descriptors:
                options = bwrap_options(
                    self.bwrap, self.python, image_of(spec), descriptors.memory, size=size
                )
                options += ["--perms", "0000", "--size", "4096", "--tmpfs", "/proc/1"]
                options += ["--remount-ro", "/proc/1", "--seccomp", str(descriptors.memory(self.filter))]
                inner = [self.python.executable, "-s", "-S", "-P", "-B", AGENT, number, number]
                process = subprocess.Popen(
                    [*options, "--", *inner, json.dumps(asked)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    pass_fds=(*descriptors.numbers, theirs.fileno()),
                    env={},
                    cwd="/",
                    user=uid,
                    group=uid,
                    extra_groups=None if uid is None else (),
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise NotBuilt(*explain(str(error))) from error
        finally:
            theirs.close()
        return ours, process

    async def _bound(self, channel: HostChannel, spec: SandboxSpec) -> None:
        if self.hierarchy is None:
            return
        try:
            group = await joined(self.hierarchy, spec.limits.memory_bytes, channel.handle)
        except BaseException:
            await asyncio.shield(channel.kill())
            raise
        channel.bound_by(group)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    """Its first process has ended, so bwrap ends by itself."""
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
