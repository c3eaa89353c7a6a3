"""Is a Docker engine good enough? What it says of itself, and what a program sees inside."""

import platform
from collections.abc import Mapping
from typing import Any

from workers.sandbox.docker.container import FOLDERS
from workers.sandbox.docker.settings import DockerSettings
from workers.sandbox.protocol import Sandbox

_LOOK = "cat /proc/self/status; echo Interfaces: $(ls /sys/class/net); cat /proc/self/mounts"
_ABILITIES = {
    "MemoryLimit": "bound memory",
    "SwapLimit": "bound swap",
    "PidsLimit": "bound processes",
    "CpuCfsQuota": "bound CPU",
}


def lacking(info: Mapping[str, Any], settings: DockerSettings) -> tuple[str, str] | None:
    """(reason, fix) for what the engine says it cannot do; None when it can all."""
    if info.get("OSType") != "linux":
        return (
            f"The Docker engine runs {info.get('OSType')} containers.",
            "Use an engine for Linux containers.",
        )
    if (machine := str(info.get("Architecture"))) != platform.machine():
        return (
            f"The Docker engine's machine is {machine}, this one is {platform.machine()}.",
            "Run the worker on the same kind of machine as the engine.",
        )
    for name, ability in _ABILITIES.items():
        if info.get(name) is False:
            return (
                f"The Docker engine cannot {ability} ({name} is off).",
                "Turn on the cgroup controllers memory, pids and cpu on its host (swap: swapaccount=1).",
            )
    if not any("name=seccomp" in option for option in info.get("SecurityOptions") or ()):
        return "The Docker engine has no seccomp.", "Use a kernel and an engine with seccomp."
    if settings.runtime and settings.runtime not in (info.get("Runtimes") or {}):
        return (
            f"The Docker engine has no runtime {settings.runtime!r}.",
            "Install it and name it in the engine's daemon.json, or unset FLYWHEEL_DOCKER_RUNTIME.",
        )
    return None


async def not_in_force(sandbox: Sandbox) -> tuple[str, str] | None:
    """(reason, fix) for a protection that a program inside does not find; None when all are there."""
    result = await sandbox.exec(["sh", "-c", _LOOK])
    lines = [line.split() for line in result.stdout.text.splitlines()]
    wanted = [
        ["NoNewPrivs:", "1"],
        ["Seccomp:", "2"],
        ["CapEff:", "0" * 16],
        ["CapBnd:", "0" * 16],
        ["Interfaces:", "lo"],
    ]
    missing = [" ".join(line) for line in wanted if line not in lines]
    mounts = {line[1]: line[2:4] for line in lines if len(line) == 6}
    if "ro" not in mounts.get("/", ["", ""])[1].split(","):
        missing.append("a read-only root")
    missing += [f"a bounded {folder}" for folder in FOLDERS if "size=" not in mounts.get(folder, ["", ""])[1]]
    works = await sandbox.exec(["python", "-c", "print(6 * 7)"])
    if works.stdout.text != "42\n":
        missing.append(f"Python ({works.stderr.text.strip()[-200:] or works.status})")
    if not missing:
        return None
    return (
        f"A container does not have what it must have: {missing[0]}.",
        "Look at the engine's default options and security modules; no program runs without it.",
    )
