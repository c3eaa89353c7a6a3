"""A process that waits to become a program: forked, plumbed and confined before anything is asked.

Most of what a start costs is done while nobody waits. What comes last is told on the channel: the
limits of this program, its command line and environment.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without enums, which cost a forked program time
import os
import struct
import sys

from . import kernel, sockets
from .frames import decode, encode
from .python_program import FLAGS, Warm, get_ready, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

MOST_DESCRIPTORS = 512  # the agent never has a higher one; without close_range() each costs a call
_CHANNEL = 3
_ABOVE = 64
_UNKNOWN = 128 << 20
_LENGTHS = struct.Struct("!II")
_LIMITS = {
    "cpu": kernel.RLIMIT_CPU,
    "address": kernel.RLIMIT_AS,
    "files": kernel.RLIMIT_NOFILE,
    "bytes": kernel.RLIMIT_FSIZE,
    "stack": kernel.RLIMIT_STACK,
    "processes": kernel.RLIMIT_NPROC,
    "core": kernel.RLIMIT_CORE,
}


class Become(BaseException):
    """Raised in a forked process: unwind the whole stack, then call ``program``."""

    def __init__(self, program: Callable[[], None]) -> None:
        self.program = program


class Sheath:
    """What lies between the agent and its programs. ``drops``: there are capabilities to give up. Made
    once, before anything is forked."""

    def __init__(self, *, workspace: str, seccomp: kernel.Seccomp | None, drops: bool, warm: Warm) -> None:
        self.workspace = workspace
        self.seccomp = seccomp
        self.drops = drops
        self.warm = warm
        self.most = {name: kernel.hard_limit(kind) for name, kind in _LIMITS.items()}
        self.own_address_space = _UNKNOWN
        try:
            with open("/proc/self/statm", "rb") as stream:
                self.own_address_space = int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return  # this process is hidden already


class Unborn:
    """The waiting process, seen from the agent. ``ends`` are the agent's ends of its streams."""

    def __init__(self, sheath: Sheath) -> None:
        """In the forked process it raises ``Become``, or never returns."""
        theirs, self.ends = {}, {}
        theirs[0], self.ends["in"] = os.pipe2(os.O_CLOEXEC)
        for number, name in ((1, "out"), (2, "err")):
            self.ends[name], theirs[number] = os.pipe2(os.O_CLOEXEC)
        self.ends["talk"], theirs[_CHANNEL] = sockets.pair()
        self.pid = os.fork()
        if self.pid == 0:
            _wait(sheath, theirs)
        for descriptor in theirs.values():
            os.close(descriptor)

    def start(self, limits: dict[str, int], words: bytes, *, stdin: bool, talk: bool) -> None:
        """``words`` is JSON: argv and env. What is not wanted of the streams is closed."""
        told = encode({"limits": limits, "stdin": stdin, "talk": talk})
        view = memoryview(b"".join((_LENGTHS.pack(len(told), len(words)), told, words)))
        try:
            while view:
                view = view[os.write(self.ends["talk"], view) :]
        except OSError:
            view = view[:0]  # it has died, which is seen elsewhere
        for name, wanted in (("in", stdin), ("talk", talk)):
            if not wanted:
                os.close(self.ends.pop(name))
        for descriptor in self.ends.values():
            os.set_blocking(descriptor, False)

    def close(self) -> None:
        for descriptor in self.ends.values():
            os.close(descriptor)


def _wait(sheath: Sheath, theirs: dict[int, int]) -> NoReturn:
    """In the forked process: give up what the agent has, wait for the word, be the program."""
    run = None
    try:
        _confine(sheath, theirs)
        get_ready()
        first, second = _LENGTHS.unpack(_read(_LENGTHS.size))
        told, words = decode(_read(first)), decode(_read(second))
        argv, env = words["argv"], words["env"]
        _plumb(told, env)
        os.chdir(sheath.workspace)
        _limit(told["limits"], sheath)
        if argv[0] == "python":
            plan = sheath.warm.plan(argv, env)
            if plan is not None:
                run = program(plan, env, sheath.warm, stdin=told["stdin"])
    except BaseException as error:
        _say(f"sandbox: the program could not be started: {type(error).__name__}: {error}")
        os._exit(126)
    if run is None:
        _start(argv, env)
    raise Become(run)


def _confine(sheath: Sheath, theirs: dict[int, int]) -> None:
    os.setpgid(0, 0)
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    if min(theirs.values()) <= _CHANNEL:  # above all numbers in use first: none is overwritten unmoved
        theirs = {number: os.dup2(theirs[number], _ABOVE + number, inheritable=False) for number in theirs}
    for number, descriptor in theirs.items():
        os.dup2(descriptor, number, inheritable=True)
    os.closerange(_CHANNEL + 1, MOST_DESCRIPTORS)
    _prefer_for_oom()
    os.umask(0o022)
    if sheath.drops:
        kernel.set_capabilities(0)
    kernel.set_dumpable(True)
    if sheath.seccomp is not None:
        sheath.seccomp.install()


def _plumb(told: dict[str, Any], env: dict[str, str]) -> None:
    if told["talk"]:
        env["FLYWHEEL_CHANNEL"] = str(_CHANNEL)
    else:
        os.close(_CHANNEL)
    if not told["stdin"]:
        nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0, inheritable=True)
        os.close(nothing)


def _limit(limits: dict[str, int], sheath: Sheath) -> None:
    asked = {**limits, "address": limits["address"] + sheath.own_address_space, "core": 0}
    for name, kind in _LIMITS.items():
        soft, most = asked[name], sheath.most[name]
        hard = soft + 1 if name == "cpu" else soft
        kernel.set_limit(kind, min(soft, most), min(hard, most))


def _prefer_for_oom() -> None:
    """When memory ends the kernel shall choose the program, not the agent."""
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, b"1000")
    except OSError:
        return
    finally:
        os.close(descriptor)


def _read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(_CHANNEL, size - len(data))
        if not chunk:
            os._exit(0)
        data += chunk
    return data


def _start(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Become another program; the shell's codes where there is none."""
    for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them; others expect the default
        _signal.signal(ignored, _signal.SIG_DFL)
    arguments = argv
    if argv[0] == "python":
        arguments = [sys.executable, *FLAGS, *argv[1:]]
    try:
        os.execvpe(arguments[0], arguments, env)
    except FileNotFoundError:
        _say(f"sandbox: {argv[0][:200]}: not found")
        os._exit(127)
    except (OSError, ValueError) as error:
        _say(f"sandbox: {argv[0][:200]}: {error}")
        os._exit(126)


def _say(text: str) -> None:
    try:
        os.write(2, text.encode("utf-8", "replace") + b"\n")
    except OSError:
        return
