"""A memory cgroup for one sandbox, where the host lets us have one.

v1 and v2 both; the parent is the worker's own group, else the root of the hierarchy. Groups are
named after the worker's process, so that those of a killed worker can be recognised and removed.
"""

import contextlib
import itertools
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_PREFIX = "flywheel-"
_counter = itertools.count()


class GroupUnavailable(OSError):
    """The group could not be made or joined."""


@dataclass(frozen=True)
class Hierarchy:
    """Where groups can be made."""

    version: Literal["v1", "v2"]
    parent: Path

    def create(self, memory_bytes: int) -> "MemoryGroup":
        """Make a group that holds ``memory_bytes`` in all, without swap. Raises ``GroupUnavailable``."""
        path = self.parent / f"{_PREFIX}{os.getpid()}-{next(_counter)}"
        group = MemoryGroup(self.version, path)
        try:
            path.mkdir()
            if self.version == "v2":
                (path / "memory.max").write_text(str(memory_bytes))
                _write_if_there(path / "memory.swap.max", "0")
            else:
                (path / "memory.limit_in_bytes").write_text(str(memory_bytes))
                _write_if_there(path / "memory.memsw.limit_in_bytes", str(memory_bytes))
        except OSError as error:
            group.remove()
            raise GroupUnavailable(error.errno, f"memory cgroup: {error.strerror}") from error
        return group

    def remove_stale(self, *, within_s: float = 0.0) -> int:
        """End what is left in the groups of workers that no longer live, and remove these groups; returns
        how many. Waits up to ``within_s`` for processes that are still ending."""
        deadline = time.monotonic() + within_s
        removed = 0
        for path in self.parent.glob(f"{_PREFIX}*-*"):
            pid = path.name.removeprefix(_PREFIX).split("-")[0]
            if not pid.isdigit() or Path("/proc", pid).exists():
                continue
            while not _removed(path) and time.monotonic() < deadline:
                time.sleep(0.01)
            removed += not path.exists()
        return removed


@dataclass(frozen=True)
class MemoryGroup:
    version: Literal["v1", "v2"]
    path: Path
    _kept: dict[str, int] = field(default_factory=dict, compare=False)

    def keep_open(self) -> None:
        """For a group that will be looked at often: its files stay open until ``let_go``."""
        for name in (self._oom_name, self._peak_name):
            with contextlib.suppress(OSError):
                self._kept[name] = os.open(self.path / name, os.O_RDWR | os.O_CLOEXEC)

    def let_go(self) -> None:
        """Close what ``keep_open`` opened."""
        while self._kept:
            os.close(self._kept.popitem()[1])

    def limit(self, memory_bytes: int) -> None:
        """Change the bound of a group in which little is left. Raises ``GroupUnavailable``."""
        try:
            if self.version == "v2":
                (self.path / "memory.max").write_text(str(memory_bytes))
            else:
                self._limit_v1(memory_bytes)
        except OSError as error:
            raise GroupUnavailable(error.errno, f"memory cgroup: {error.strerror}") from error

    def _limit_v1(self, memory_bytes: int) -> None:
        memory, both = (self.path / f"memory.{name}limit_in_bytes" for name in ("", "memsw."))
        order = (memory, both)  # at no time may the first be above the second
        if both.exists() and int(both.read_text()) < memory_bytes:
            order = (both, memory)
        for path in order:
            _write_if_there(path, str(memory_bytes))

    def add(self, pid: int) -> None:
        """Move a process (and so its later children) into the group."""
        try:
            (self.path / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise GroupUnavailable(error.errno, f"memory cgroup: {error.strerror}") from error

    def oom_kills(self) -> int:
        """How often the kernel ended a process here for want of memory."""
        with contextlib.suppress(OSError):
            for line in self._read(self._oom_name).splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        return 0

    def peak_bytes(self) -> int | None:
        """The most memory the group ever held, its tmpfs included; None on kernels that do not say."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._read(self._peak_name))
        return None

    def forget_peak(self) -> None:
        """Let ``peak_bytes`` count from now; newer kernels of v2 only let each reader do so."""
        if self.version == "v1":
            with contextlib.suppress(OSError):
                if self._peak_name in self._kept:
                    os.pwrite(self._kept[self._peak_name], b"0", 0)
                else:
                    (self.path / self._peak_name).write_text("0")

    def remove(self) -> None:
        """Remove the group; the kernel may need a moment after the last process ended."""
        self.let_go()
        for pause_s in (0.001, 0.005, 0.02, 0.1):
            try:
                self.path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(pause_s)

    @property
    def _oom_name(self) -> str:
        return "memory.events" if self.version == "v2" else "memory.oom_control"

    @property
    def _peak_name(self) -> str:
        return "memory.peak" if self.version == "v2" else "memory.max_usage_in_bytes"

    def _read(self, name: str) -> str:
        if name in self._kept:
            return os.pread(self._kept[name], 4096, 0).decode()
        return (self.path / name).read_text()


def find_hierarchy() -> Hierarchy | None:
    """The first place where a group can really be made, or None."""
    for version, mount in _mounts():
        own = _own_group(version)
        for parent in dict.fromkeys((mount / own.lstrip("/"), mount)):
            hierarchy = Hierarchy(version, parent)
            try:
                hierarchy.create(16 << 20).remove()
            except GroupUnavailable:
                continue
            hierarchy.remove_stale()
            return hierarchy
    return None


def _removed(path: Path) -> bool:
    """Try it once; processes that are in the way are ended."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        with contextlib.suppress(OSError):
            for pid in (path / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        return False
    return True


def _mounts() -> list[tuple[Literal["v1", "v2"], Path]]:
    found: list[tuple[Literal["v1", "v2"], Path]] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            kind, _, options = right.split(" ", 2)
            mount = Path(left.split(" ")[4])
            if kind == "cgroup2":
                found.append(("v2", mount))
            elif kind == "cgroup" and "memory" in options.split(","):
                found.append(("v1", mount))
    return found


def _own_group(version: Literal["v1", "v2"]) -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if version == "v2" and number == "0" and not controllers:
                return path
            if version == "v1" and "memory" in controllers.split(","):
                return path
    return "/"


def _write_if_there(path: Path, text: str) -> None:
    if path.exists():
        path.write_text(text)
