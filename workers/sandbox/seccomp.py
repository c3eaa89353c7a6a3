"""The seccomp filter: a classic BPF deny list, assembled by hand so that it needs no library.

Everything that is not named is allowed up to the newest system call known here; above it the
answer is ENOSYS, as on an older kernel. Foreign architectures and x32 calls kill the process.
Numbers are those of Linux's own tables (arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h). Memory that neither RLIMIT_AS nor a tmpfs bounds (memfd,
System V shared memory and message queues) is denied too, because a host may lack a cgroup.
"""

import errno
import platform
import struct
from dataclasses import dataclass

# The kernel reads clone flags, address family and ioctl request as 32 bits: so does the filter.
# struct seccomp_data: int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6] (little endian)
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

_AF_UNIX = 1
_X32_BIT = 0x40000000
_NEWEST = 462  # mseal, Linux 6.10
# CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; CLONE_NEWTIME cannot be given to clone().
_NAMESPACE_FLAGS = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# name -> (x86_64, aarch64); None: the architecture lacks it
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
}


class UnknownArchitecture(LookupError):
    """There is no table for this machine; a filter made of foreign numbers would protect nothing."""


@dataclass(frozen=True)
class _Architecture:
    audit: int  # AUDIT_ARCH_*
    column: int  # in _DENIED
    clone: int
    clone3: int
    socket: int
    socketpair: int
    ioctl: int
    prlimit64: int
    has_x32: bool


_ARCHITECTURES = {
    "x86_64": _Architecture(0xC000003E, 0, 56, 435, 41, 53, 16, 302, True),
    "aarch64": _Architecture(0xC00000B7, 1, 220, 435, 198, 199, 29, 261, False),
}


def filter_program(machine: str = "") -> bytes:
    """The filter as packed ``struct sock_filter`` records, as ``bwrap --seccomp`` reads it.

    Raises ``UnknownArchitecture`` unless ``machine`` (default: this one) is x86_64 or aarch64.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise UnknownArchitecture(f"no system call table for {machine!r}")
    arch = _ARCHITECTURES[machine]

    refused = [_op(_RETURN, _ERRNO | errno.EPERM)]
    allowed = [_op(_RETURN, _ALLOW)]
    denied = (numbers[arch.column] for numbers in _DENIED.values())
    answers = {number: refused for number in denied if number is not None}
    answers[arch.clone3] = [_op(_RETURN, _ERRNO | errno.ENOSYS)]
    answers[arch.clone] = [_op(_LOAD, _ARG0), _op(_JUMP_SET, _NAMESPACE_FLAGS, 0, 1), *refused, *allowed]
    # Another process's limits: the agent has the same user. A program sets its own by number 0.
    for call, only in ((arch.socket, _AF_UNIX), (arch.socketpair, _AF_UNIX), (arch.prlimit64, 0)):
        answers[call] = [_op(_LOAD, _ARG0), _op(_JUMP_EQ, only, 1, 0), *refused, *allowed]
    terminal = [_op(_JUMP_EQ, _TIOCSTI, 1, 0), _op(_JUMP_EQ, _TIOCLINUX, 0, 1)]
    answers[arch.ioctl] = [_op(_LOAD, _ARG1), *terminal, *refused, *allowed]

    program = [_op(_LOAD, _ARCH), _op(_JUMP_EQ, arch.audit, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NR)]
    if arch.has_x32:
        program += _answer_if(_JUMP_GE, _X32_BIT, _KILL)
    program += _answer_if(_JUMP_GE, _NEWEST + 1, _ERRNO | errno.ENOSYS)
    return b"".join([*program, *_search(sorted(answers.items()), otherwise=allowed)])


def _search(answers: list[tuple[int, list[bytes]]], *, otherwise: list[bytes]) -> list[bytes]:
    """Find the number by halving. The kernel walks the program for every call there is when a filter
    is installed, and for a call that looks at arguments each time: a list would cost each start 0.1 ms."""
    if not answers:
        return otherwise
    if len(answers) == 1:
        number, answer = answers[0]
        return [_op(_JUMP_EQ, number, 0, len(answer)), *answer, *otherwise]
    middle = len(answers) // 2
    below, above = (_search(half, otherwise=otherwise) for half in (answers[:middle], answers[middle:]))
    return [_op(_JUMP_GE, answers[middle][0], len(below), 0), *below, *above]


def _op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, k)


def _answer_if(jump: int, k: int, answer: int) -> list[bytes]:
    return [_op(jump, k, 0, 1), _op(_RETURN, answer)]
