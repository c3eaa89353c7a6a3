"""How a container is hardened, and whose it is.

No network, a read-only root, no capabilities, no new privileges, our own system call filter, a user
that is no other container's, bounded memory (swap included), processes, CPU and files in memory, no
log. Labels name the process that owns it, so that what a dead one left can be found.
"""

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.sandbox.docker.seccomp import docker_profile
from workers.sandbox.docker.settings import DockerSettings
from workers.sandbox.protocol import MIB, Limits

WORKSPACE = "/workspace"
FOLDERS = (WORKSPACE, "/tmp", "/dev/shm")
LABEL, OWNER, PROCESS, EXPIRES = (f"flywheel.{name}" for name in ("sandbox", "owner", "process", "expires"))
_FIRST_UID, _UIDS = 0x40000000, 1 << 28
_AGENT_BYTES = 48 * MIB  # the agent's own memory comes on top of what its programs may have
_AGENT_PROCESSES = 8
_INODE_SHARE = 1024  # one inode for so many bytes
_GONE_AFTER_S = 600


def host_config(api: Any, settings: DockerSettings, limits: Limits, uid: int) -> dict[str, Any]:
    """For ``api.create_host_config``."""
    memory = limits.memory_bytes + _AGENT_BYTES
    size = limits.workspace_bytes
    folder = f"rw,exec,nosuid,nodev,size={size},nr_inodes={max(1024, size // _INODE_SHARE)},mode=0700"
    config: dict[str, Any] = api.create_host_config(
        network_mode="none",
        ipc_mode="none",  # no shared memory but the small folder below
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={docker_profile()}"],
        tmpfs={path: f"{folder},uid={uid},gid={uid}" for path in FOLDERS},
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=limits.processes + _AGENT_PROCESSES,
        cpu_period=100_000,
        cpu_quota=int(settings.cpus * 100_000),
        ulimits=[{"Name": "core", "Soft": 0, "Hard": 0}],
        log_config={"Type": "none"},
        init=False,
        privileged=False,
        runtime=settings.runtime or None,
    )
    return config


def fresh_uid() -> int:
    """A user for one container: limits and signals that go by user reach no other."""
    return _FIRST_UID + secrets.randbelow(_UIDS)


def labels(owner: str, ttl_s: int) -> dict[str, str]:
    return {LABEL: "1", OWNER: owner, PROCESS: own_process(), EXPIRES: str(int(time.time()) + ttl_s)}


def own_process() -> str:
    """This process as no other ever was: boot, pid namespace, number, start time."""
    return f"{_boot()}/{os.getpid()}/{_started(os.getpid())}"


def is_left_behind(container: Mapping[str, Any], now_s: float) -> bool:
    """``container`` is an entry of the engine's list. Its owner on this machine is dead, its time is
    over, or it ended long ago and whoever owned it did not care."""
    found = container.get("Labels") or {}
    boot, _, rest = str(found.get(PROCESS, "")).rpartition("/")[0].partition("/")
    namespace, _, number = rest.partition("/")
    if f"{boot}/{namespace}" == _boot() and number.isdigit():
        return bool(found[PROCESS] != f"{_boot()}/{number}/{_started(int(number))}")
    expires = str(found.get(EXPIRES, ""))
    if not expires.isdigit() or now_s > int(expires):
        return True
    running = container.get("State") in ("running", "created")
    return not running and now_s - float(container.get("Created", now_s)) > _GONE_AFTER_S


def _boot() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> str:
    """In clock ticks after boot; "" when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
