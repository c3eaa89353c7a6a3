"""The embedded backend: sandboxes forked from a warm interpreter inside ``bwrap``, as root or any user.

Each has fresh user, pid, mount, net, ipc and uts namespaces, a read-only ``/usr`` and Python, small
folders in memory for all it may write, and its own ``/proc`` that hides the agent. Its programs have
no capabilities, no new privileges, the filter of ``seccomp.py``, resource limits and, where the host
lets us, a memory cgroup.
"""

import asyncio
import atexit
import os
import platform
import sys
import threading
from pathlib import Path
from typing import Any

from workers.sandbox.agent_backend import AgentBackend
from workers.sandbox.cgroup import Hierarchy, find_hierarchy
from workers.sandbox.channel import NotBuilt
from workers.sandbox.images import Image, image_named
from workers.sandbox.installation import Python, bwrap_candidates, reachable_bwrap, reachable_python
from workers.sandbox.protocol import Capabilities, SandboxGone, SandboxSpec, SandboxUnavailable
from workers.sandbox.refusals import explain
from workers.sandbox.root_view import environment
from workers.sandbox.seats import Seats
from workers.sandbox.seccomp import UnknownArchitecture, filter_program
from workers.sandbox.session import AgentSandbox
from workers.sandbox.zygote import ZygoteFailed, start_zygote

PLAIN = "python"  # the image that holds nothing but the standard library
_OLDEST = (5, 14)
_ATTEMPTS = 2
_MOST_ENDING = 8
_REAP_S = 5.0


class BubblewrapBackend(AgentBackend):
    """Keeps one warm interpreter for each image and set of modules, for as long as this process lives."""

    name = "bubblewrap"

    def __init__(self, *, use_cgroup: bool = True) -> None:
        super().__init__()
        self._use_cgroup = use_cgroup
        self.hierarchy: Hierarchy | None = None
        self._bwrap: Path | None = None
        self._python: Python | None = None
        self.filter = b""
        self._endings: set[asyncio.Task[None]] = set()
        self._warm: dict[tuple[str, tuple[str, ...]], Seats] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    async def reap(self, owner: str = "") -> int:
        """Processes and mounts of a worker end with it; its cgroups stay until they are removed here."""
        if self._capabilities is None:
            await asyncio.to_thread(self.probe)
        if self.hierarchy is None:
            return 0
        return await asyncio.to_thread(self.hierarchy.remove_stale, within_s=_REAP_S)

    def close(self) -> None:
        """End all sandboxes and warm interpreters of this backend."""
        with self._lock:
            for seats in self._warm.values():
                seats.close()
            self._warm.clear()

    async def _create(self, spec: SandboxSpec) -> AgentSandbox:
        for attempt in range(_ATTEMPTS):
            seats = self._seats(spec)
            if seats is None:
                seats = await asyncio.to_thread(self._warm_up, spec)
            try:
                channel = await seats.create(spec.limits.workspace_bytes, spec.limits.memory_bytes)
            except (ZygoteFailed, NotBuilt) as error:
                if attempt + 1 < _ATTEMPTS:
                    # Killed from outside, perhaps only just now: then another is started.
                    await asyncio.to_thread(seats.zygote.settle)
                    continue
                raise error if isinstance(error, NotBuilt) else NotBuilt(*explain(str(error))) from error
            return AgentSandbox(channel, spec, environment=environment(self.python, image_of(spec)))
        raise AssertionError("unreachable")

    async def _let_go(self, sandbox: AgentSandbox) -> None:
        """Its program has ended, with all that it started, and it is told to end; that the kernel takes
        the rest apart is waited for only where that does not keep up."""
        ending = asyncio.create_task(sandbox.close())
        if len(self._endings) >= _MOST_ENDING:
            await ending
            return
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    @property
    def python(self) -> Python:
        return self._python or reachable_python()

    @property
    def bwrap(self) -> Path:
        """Raises ``NotBuilt`` until a probe has found one."""
        if self._bwrap is None:
            raise NotBuilt("No bwrap was found.", "Install the package bubblewrap.")
        return self._bwrap

    def _seats(self, spec: SandboxSpec) -> Seats | None:
        seats = self._warm.get((spec.image, spec.preimport))
        return seats if seats is not None and seats.zygote.alive else None

    def _warm_up(self, spec: SandboxSpec) -> Seats:
        """Raises ``SandboxUnavailable`` for an unknown image, ``NotBuilt`` for what did not start."""
        with self._lock:
            found = self._seats(spec)
            if found is not None:
                return found
            image = image_of(spec)
            try:
                zygote = start_zygote(self.bwrap, self.python, image, spec.preimport, self.filter)
            except ZygoteFailed as error:
                raise NotBuilt(*explain(str(error))) from error
            for key in [key for key, seats in self._warm.items() if not seats.zygote.alive]:
                self._warm.pop(key).close()
            self._warm[spec.image, spec.preimport] = Seats(zygote, self.hierarchy)
            return self._warm[spec.image, spec.preimport]

    def _probe(self) -> Capabilities:
        if sys.platform != "linux":
            return Capabilities(False, "Bubblewrap needs Linux.", "Run the workers on Linux.")
        if _kernel() < _OLDEST:
            reason = f"Linux {platform.release()} counts the processes of all sandboxes together."
            return Capabilities(False, reason, "Use Linux 5.14 or newer, or the Docker backend.")
        try:
            self.filter = filter_program()
        except UnknownArchitecture:
            reason = f"There is no system call filter for {platform.machine()}."
            return Capabilities(False, reason, "Run the workers on x86_64 or aarch64.")
        try:
            self._python = reachable_python()
            candidates = [reachable_bwrap(path) for path in bwrap_candidates()]
        except OSError as error:
            reason = f"Python or bwrap lies where an unprivileged user cannot read it ({error})."
            return Capabilities(False, reason, "Install the project outside /root or start it as a user.")
        if not candidates:
            return Capabilities(False, "No bwrap was found.", "Install the package bubblewrap.")
        self.hierarchy = find_hierarchy() if self._use_cgroup else None
        said = ""
        for candidate in candidates:
            self._bwrap = candidate
            said = self._try()
            if not said:
                return self._found()
            self.close()
        return Capabilities(False, *explain(said))

    def _found(self) -> Capabilities:
        if self.hierarchy is not None:
            return Capabilities(True, cgroup=self.hierarchy.version)
        notes = (
            "No memory cgroup can be made: memory is bounded for each process (RLIMIT_AS), not in total.",
        )
        return Capabilities(True, cgroup="none", notes=notes)

    def _try(self) -> str:
        """Build a sandbox as ``create`` does and look at it from the inside; "" or what is wrong."""
        found: list[str] = []

        def attempt() -> None:
            try:
                found.append(asyncio.run(self._look()))
            except (SandboxUnavailable, SandboxGone) as error:
                found.append(error.reason.removeprefix("The sandbox could not be built: ").removesuffix("."))

        # A thread of its own: the caller's may have a running event loop.
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        return found[0] if found else "the trial itself failed"

    async def _look(self) -> str:
        spec = SandboxSpec()
        sandbox = await self._create(spec)
        try:
            result = await sandbox.exec(["python", "-c", _LOOK])
        finally:
            await sandbox.close()
        words = [line.split() for line in result.stdout.text.splitlines()]
        missing = [" ".join(line) for line in _wanted(spec) if line not in words]
        if not missing:
            return ""
        return result.stderr.text.strip() or f"not in force: {missing[0]}"


_LOOK = """
for name in ("status", "limits"):
    print(open("/proc/self/" + name).read())
import os
for place in ("/", "/usr", "/dev", "/opt"):
    print("read-only", place, os.statvfs(place).f_flag & os.ST_RDONLY)
print("agent", "seen" if os.path.exists("/proc/1/status") else "hidden")
print("network", *(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line))
"""


def _wanted(spec: SandboxSpec) -> list[list[str]]:
    limits: list[Any] = [
        ["processes", spec.limits.processes, "processes"],
        ["open files", spec.limits.open_files, "files"],
        ["file size", spec.limits.file_bytes, "bytes"],
    ]
    return [
        ["NoNewPrivs:", "1"],
        ["Seccomp:", "2"],
        ["CapEff:", "0" * 16],
        ["CapPrm:", "0" * 16],
        ["CapBnd:", "0" * 16],
        *(f"Max {name} {most} {most} {unit}".split() for name, most, unit in limits),
        *(["read-only", place, "1"] for place in ("/", "/usr", "/dev", "/opt")),
        ["agent", "hidden"],
        ["network", "lo"],
    ]


def image_of(spec: SandboxSpec) -> Image | None:
    """Raises ``SandboxUnavailable``."""
    return None if spec.image == PLAIN else image_named(spec.image)


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())
