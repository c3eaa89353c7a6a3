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
import json
import os
import socket

from . import kernel
from .birth import MOST_DESCRIPTORS, Become, Sheath
from .frames import Stream, pack
from .programs import Programs
from .python_program import Warm
from .rehearsal import rehearse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CHANNEL = 9
_NO_PROGRAMS = kernel.MS_NOSUID | kernel.MS_NOEXEC
_NO_DEVICES = kernel.MS_NOSUID | kernel.MS_NODEV


class Zygote:
    def __init__(self, control: int, options: dict[str, Any]) -> None:
        from .start import _OWN, warm_up

        self._control = socket.socket(fileno=control)
        program = os.pread(int(options["seccomp"]), 1 << 16, 0)
        os.close(int(options["seccomp"]))
        try:
            warm_up(options["preimport"])
        except BaseException as error:
            self._control.send(json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}).encode())
            os._exit(1)
        self._sheath = Sheath(
            workspace="/workspace", seccomp=kernel.Seccomp(program), drops=True, warm=Warm(_OWN)
        )
        rehearse(Sheath(workspace="/", seccomp=None, drops=False, warm=self._sheath.warm), self._sheath.warm)
        gc.freeze()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel reaps sandboxes that have ended
        self._control.send(b"{}")

    def serve(self) -> None:
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
            if not message or not descriptors:
                os._exit(0)
            asked = json.loads(message)
            copy = bool(asked.get("copy"))
            try:
                pid = os.fork() if copy else kernel.clone_into_namespaces()
            except OSError as error:
                _refuse(descriptors[0], error)
                pid = -1
            if pid == 0 and copy:
                self._be_copy(descriptors[0])
            elif pid == 0:
                self._sandbox(descriptors[0], asked)
            else:
                os.close(descriptors[0])

    def _be_copy(self, control: int) -> None:
        from .start import say_hello

        self._control.close()
        self._control = socket.socket(fileno=control)
        say_hello(control, handle=True)

    def _sandbox(self, channel: int, asked: dict[str, Any]) -> None:
        """The first process of a sandbox. The process of its first program is forked before the folders
        are mounted: what each has to do then happens side by side."""
        from .serve import Agent, mount_folders
        from .start import say_hello

        size, moves = int(asked["bytes"]), bool(asked.get("moves"))
        try:
            os.dup2(channel, _CHANNEL, inheritable=False)
            self._control.detach()  # closed by number here, never by its object
            os.closerange(3, _CHANNEL)
            os.closerange(_CHANNEL + 1, MOST_DESCRIPTORS)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            os.setsid()  # the scheduler's group, where it has such: many processes weigh as one sandbox
            _map_user(asked["uid"])
            stream = Stream(_CHANNEL, _CHANNEL)
            programs = Programs(stream, self._sheath)
            if not moves:
                programs.prepare()
            kernel.mount("proc", "/proc", "proc", _NO_DEVICES | kernel.MS_NOEXEC, "hidepid=invisible")
            kernel.mount("devpts", "/dev/pts", "devpts", _NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=620")
            mount_folders(size)
            say_hello(_CHANNEL, handle=True)
            # Before the first request is read, but while the host is busy with the greeting.
            kernel.drop_bounding_set()
            kernel.set_capabilities(kernel.CAP_SYS_ADMIN | kernel.CAP_DAC_OVERRIDE)
            kernel.no_new_privileges()
            kernel.set_dumpable(False)
        except Become:
            raise  # in the process of the first program
        except BaseException as error:
            _refuse(_CHANNEL, error)
            os._exit(1)
        Agent(stream, programs, self._sheath.workspace, mounts=True, bytes=size, moves=moves).serve()


def _refuse(channel: int, error: BaseException) -> None:
    text = f"{type(error).__name__}: {error}"[:500]
    with socket.socket(fileno=os.dup(channel)) as said:
        said.send(pack({"id": 0, "kind": "error", "error": "broken", "text": text}))


def _map_user(uid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{uid} {uid} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
