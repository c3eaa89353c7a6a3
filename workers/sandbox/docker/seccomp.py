"""The filter of ``seccomp.py`` as Docker's JSON: the same names denied, the same answers.

Calls newer than the list are the one difference: Docker's format cannot name them, so what a kernel
newer than Linux 6.10 added is allowed here and ENOSYS in the embedded sandbox.
"""

import errno
import json
import platform
from typing import Any

from workers.sandbox import seccomp

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW_HALF = 0xFFFFFFFF


def docker_profile(machine: str = "") -> str:
    """The profile for ``security_opt``; foreign architectures (and x32) kill the process.

    Raises ``UnknownArchitecture`` unless ``machine`` (default: this one) is x86_64 or aarch64.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise seccomp.UnknownArchitecture(f"no system call table for {machine!r}")
    rules: list[dict[str, Any]] = [
        _deny(sorted(seccomp._DENIED)),
        _deny(["clone3"], answer=errno.ENOSYS),
        # The kernel reads the family as 32 bits; the comparison is over 64, which only denies more.
        _deny(["socket", "socketpair"], {"index": 0, "op": "SCMP_CMP_NE", "value": seccomp._AF_UNIX}),
    ]
    # A program may ask for its own limits, not for those of the agent.
    rules.append(_deny(["prlimit64"], {"index": 0, "op": "SCMP_CMP_NE", "value": 0}))
    rules += [_deny(["clone"], _masked(0, bit, bit)) for bit in _bits(seccomp._NAMESPACE_FLAGS)]
    rules += [
        _deny(["ioctl"], _masked(1, _LOW_HALF, request)) for request in (seccomp._TIOCSTI, seccomp._TIOCLINUX)
    ]
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": [_ARCHITECTURES[machine]],
        "syscalls": rules,
    }
    return json.dumps(profile)


def _deny(names: list[str], *args: dict[str, Any], answer: int = errno.EPERM) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": answer, "args": list(args)}


def _masked(index: int, mask: int, value: int) -> dict[str, Any]:
    return {"index": index, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value}


def _bits(flags: int) -> list[int]:
    return [1 << place for place in range(32) if flags >> place & 1]
