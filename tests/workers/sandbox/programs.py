"""Limits, types and looks at the host that the tests of this folder share."""

import os
from collections.abc import Callable
from pathlib import Path

from workers.sandbox import ExecResult, Limits
from workers.sandbox.protocol import MIB

SMALL = Limits(
    wall_s=60.0,  # far above what they take: a busy machine may give a program a tenth of a core
    cpu_s=1,
    memory_bytes=96 * MIB,
    processes=24,
    open_files=48,
    file_bytes=4 * MIB,
    workspace_bytes=8 * MIB,
    output_bytes=256 * 1024,
    keep_bytes=8 * 1024,
)

Run = Callable[..., ExecResult]


def processes_with(marker: str) -> list[int]:
    """Host processes whose command line holds ``marker``."""
    found = []
    for folder in _folders():
        try:
            if marker.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def programs_of(worker: int | None = None) -> set[int]:
    """Processes of programs in sandboxes that ``worker`` (default: this process) made: two pid
    namespaces below it (the warm interpreter's and the sandbox's own), and not the agent there."""
    return {pid for pid, inside in _sandboxed(worker or os.getpid()).items() if inside != 1}


def agents_of(worker: int | None = None) -> set[int]:
    """The first processes of those sandboxes."""
    return {pid for pid, inside in _sandboxed(worker or os.getpid()).items() if inside == 1}


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if _status(pid).get("State", "Z")[0] not in "ZX"}


def _sandboxed(worker: int) -> dict[int, int]:
    """By pid on the host: the pid inside."""
    seen = {int(folder.name): _status(int(folder.name)) for folder in _folders()}
    depth = len(seen[worker]["NSpid"].split()) + 2
    found = {}
    for pid, status in seen.items():
        numbers = status.get("NSpid", "").split()
        above = pid
        while above > 1 and above != worker:
            above = int(seen.get(above, {}).get("PPid", "0"))
        if len(numbers) == depth and above == worker and status["State"][0] not in "ZX":
            found[pid] = int(numbers[-1])
    return found


def _folders() -> list[Path]:
    return [folder for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
