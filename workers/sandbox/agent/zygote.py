"""One warm interpreter that is forked for each sandbox, into fresh namespaces of its own.

It lives as long as its control socket: one message per sandbox, with the socket on which the new
agent will serve; or a message that asks for a copy, with the control socket of that. A copy does the
same: the host moves it into a memory cgroup once, and what it forks is born there. As the first
process of its own pid namespace the zygote takes all of them along when it ends. No foreign code
runs in it or its copies.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import os

from . import kernel, sockets
from .birth import MOST_DESCRIPTORS, Become, Sheath
from .frames import Stream, encode, pack, say_hello
from .programs import Programs
from .rehearsal import rehearse
from .serve import Agent, mount_folders
from .warm import warm_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COPY = b"copy"  # any other message asks for a sandbox: user, bytes, whether it will be moved
_CHANNEL = 9
_NO_PROGRAMS = kernel.MS_NOSUID | kernel.MS_NOEXEC
_NO_DEVICES = kernel.MS_NOSUID | kernel.MS_NODEV


class Zygote:
    def __init__(self, control: int, options: dict[str, Any]) -> None:
        self._control = sockets.of(control)
        program = os.pread(int(options["seccomp"]), 1 << 16, 0)
        os.close(int(options["seccomp"]))
        try:
            warm = warm_up(options["preimport"])
        except BaseException as error:
            self._control.send(encode({"error": f"{type(error).__name__}: {error}"[:500]}))
            os._exit(1)
        sheath = Sheath(workspace="/workspace", seccomp=kernel.Seccomp(program), drops=True, warm=warm)
        stream = Stream(_CHANNEL, _CHANNEL)
        self._programs = Programs(stream, sheath)
        self._agent = Agent(stream, self._programs, sheath.workspace, mounts=True)
        rehearse(Sheath(workspace="/", seccomp=None, drops=False, warm=warm), warm)
        gc.freeze()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel reaps sandboxes that have ended
        self._control.send(b"{}")

    def serve(self) -> None:
        while True:
            message, channel = sockets.receive(self._control, 4096)
            if not message or channel < 0:
                os._exit(0)
            try:
                pid = os.fork() if message == COPY else kernel.clone_into_namespaces()
            except OSError as error:
                _refuse(channel, error)
                pid = -1
            if pid == 0 and message == COPY:
                self._be_copy(channel)
            elif pid == 0:
                self._sandbox(channel, *(int(word) for word in message.split()))
            else:
                os.close(channel)

    def _be_copy(self, control: int) -> None:
        self._control.close()
        self._control = sockets.of(control)
        say_hello(control, handle=True)

    def _sandbox(self, channel: int, uid: int, size: int, moves: int) -> None:
        """The first process of a sandbox. The process of its first program is forked as early as can be:
        what each has to do then happens side by side, and few pages are copied in both."""
        try:
            os.dup2(channel, _CHANNEL, inheritable=False)
            self._control.detach()  # closed by number here, never by its object
            os.closerange(3, _CHANNEL)
            os.closerange(_CHANNEL + 1, MOST_DESCRIPTORS)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            os.setsid()  # the scheduler's group, where it has such: many processes weigh as one sandbox
            _map_user(uid)
            # Also for every program: what is given up here is gone in what is forked from here.
            kernel.drop_bounding_set()
            kernel.no_new_privileges()
            self._programs.begin()
            if not moves:
                self._programs.prepare()
            kernel.mount("proc", "/proc", "proc", _NO_DEVICES | kernel.MS_NOEXEC, "hidepid=invisible")
            kernel.mount("devpts", "/dev/pts", "devpts", _NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=620")
            mount_folders(size)
            say_hello(_CHANNEL, handle=True)
            # Before the first request is read, but while the host is busy with the greeting.
            kernel.set_capabilities(kernel.CAP_SYS_ADMIN | kernel.CAP_DAC_OVERRIDE)
            kernel.set_dumpable(False)
        except Become:
            raise  # in the process of the first program
        except BaseException as error:
            _refuse(_CHANNEL, error)
            os._exit(1)
        self._agent.serve(size, moves=bool(moves))


def _refuse(channel: int, error: BaseException) -> None:
    text = f"{type(error).__name__}: {error}"[:500]
    os.write(channel, pack({"id": 0, "kind": "error", "error": "broken", "text": text}))


def _map_user(uid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{uid} {uid} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
