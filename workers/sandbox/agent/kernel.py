"""System calls that Python 3.11 does not offer, through ctypes; limits too, because each extension module
that is loaded makes every fork dearer."""

from __future__ import annotations

import ctypes
import os
import struct

# Looked up once, before anything is forked: a look-up touches dozens of pages.
_libc = ctypes.CDLL(None, use_errno=True)
_syscall, _mount, _umount2 = _libc.syscall, _libc.mount, _libc.umount2
_getrlimit, _setrlimit = _libc.getrlimit, _libc.setrlimit
_prctl_call = _libc.prctl
_prctl_call.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
_held_syscall = ctypes.PyDLL(None, use_errno=True).syscall  # keeps the interpreter's lock, as a fork must
_before_fork, _after_fork_parent, _after_fork_child = (
    getattr(ctypes.pythonapi, f"PyOS_{name}")
    for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
)

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 24, 22, 38
_SECCOMP_MODE_FILTER = 2
_MACHINE = os.uname().machine
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CLONE = {"x86_64": 56, "aarch64": 220}
_SIGCHLD = 17
_CAPABILITY_HEAD = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
_CAPSET_NUMBER = ctypes.c_long(_CAPSET.get(_MACHINE, -1))
CAP_DAC_OVERRIDE, CAP_SYS_ADMIN = 1 << 1, 1 << 21

# CLONE_NEW{NS,UTS,IPC,USER,PID,NET}
_NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MNT_DETACH = 2, 4, 8, 2
RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_STACK, RLIMIT_CORE = 0, 1, 3, 4
RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_AS = 6, 7, 9
_LIMIT = struct.Struct("@LL")
_CLONE_ARGUMENTS = (
    ctypes.c_long(_CLONE.get(_MACHINE, -1)),
    ctypes.c_ulong(_NEW | _SIGCHLD),
    *(ctypes.c_ulong(0) for _ in range(4)),
)


class _Filter(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))


class Seccomp:
    """A filter kept ready, to be installed in each program. ``program`` is packed ``sock_filter`` records."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._filter = _Filter(len(program) // 8, ctypes.addressof(self._buffer))

    def install(self) -> None:
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(self._filter))


def set_dumpable(value: bool) -> None:
    """Not dumpable: /proc/<pid> belongs to root and nobody traces the process."""
    _prctl(_PR_SET_DUMPABLE, int(value))


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """No later program can gain any capability."""
    for capability in range(64):
        if _prctl_call(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            return  # the last capability of this kernel


def set_capabilities(mask: int) -> None:
    """Permitted and effective; nothing inheritable."""
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = struct.pack("=6I", low, low, 0, high, high, 0)
    _check(_syscall(_CAPSET_NUMBER, _CAPABILITY_HEAD, data), "capset")


def hard_limit(kind: int) -> int:
    found = ctypes.create_string_buffer(_LIMIT.size)
    _check(_getrlimit(kind, found), "getrlimit")
    return int(_LIMIT.unpack(found.raw)[1])


def set_limit(kind: int, soft: int, hard: int) -> None:
    _check(_setrlimit(kind, _LIMIT.pack(soft, hard)), "setrlimit")


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _check(_mount(*arguments), f"mount {kind} on {target}")


def unmount(target: str) -> None:
    """At once for new users; the rest when the last user lets go."""
    _check(_umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def clone_into_namespaces() -> int:
    """Like ``os.fork``, the child being the first process of fresh user, pid, mount, net, ipc and uts
    namespaces. glibc does not learn the child's thread id: let it start programs and no threads."""
    _before_fork()
    pid: int = _held_syscall(*_CLONE_ARGUMENTS)
    error = ctypes.get_errno()
    if pid == 0:
        _after_fork_child()
        return 0
    _after_fork_parent()
    if pid < 0:
        raise OSError(error, f"clone into new namespaces: {os.strerror(error)}")
    return pid


def _prctl(option: int, value: int, more: int = 0) -> None:
    _check(_prctl_call(option, value, more, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
