"""Where the agent's process begins: on a channel that it was given, or as a zygote.

``<read fd> <write fd> <options as JSON>`` serves one sandbox on that channel, in the namespaces in
which it was started. ``zygote <control fd> <options>`` forks a sandbox for each message.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

from . import kernel
from .birth import Become, Sheath
from .frames import Stream, pack
from .programs import Programs
from .python_program import Warm
from .serve import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OWN = __name__.partition(".")[0]


def main() -> Callable[[], None] | None:
    """Returns only in a process that has become a program: what to call then."""
    try:
        if sys.argv[1] == "zygote":
            from .zygote import Zygote

            Zygote(int(sys.argv[2]), json.loads(sys.argv[3])).serve()
        else:
            _serve(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
    except Become as become:
        program = become.program
    else:
        return None
    return program


def _serve(read: int, write: int, options: dict[str, Any]) -> None:
    """``bytes`` bounds what an archive may hold; ``hello`` sends this process's handle along; ``drops``
    says that there are capabilities to drop."""
    moves = bool(options.get("moves"))
    moved = {descriptor: _aside(descriptor) for descriptor in {read, write}}
    read, write = moved[read], moved[write]
    warm_up(options.get("preimport", []))
    kernel.set_dumpable(False)
    sheath = Sheath(workspace="/workspace", seccomp=None, drops=bool(options.get("drops")), warm=Warm(_OWN))
    say_hello(write, handle=bool(options.get("hello")))
    stream = Stream(read, write)
    programs = Programs(stream, sheath)
    Agent(stream, programs, sheath.workspace, mounts=False, bytes=int(options["bytes"]), moves=moves).serve()


def _aside(descriptor: int) -> int:
    """Away from the numbers of the standard streams, which then lead nowhere."""
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    if descriptor <= 2:
        nowhere = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, descriptor, inheritable=True)
        os.close(nowhere)
    else:
        os.close(descriptor)
    return moved


def say_hello(write: int, *, handle: bool) -> None:
    """The first frame: ready. With ``handle`` a pidfd of this process goes along (unix sockets only)."""
    frame = pack({"id": 0, "kind": "ready"})
    if not handle:
        view = memoryview(frame)
        while view:
            view = view[os.write(write, view) :]
        return
    own = os.pidfd_open(os.getpid())
    with socket.socket(fileno=os.dup(write)) as channel:
        socket.send_fds(channel, [frame], [own])
    os.close(own)


def warm_up(modules: list[str]) -> None:
    """Import and use what programs need anyway, so that every fork has it."""
    import gc
    import importlib
    import linecache  # noqa: F401
    import runpy  # noqa: F401
    import threading  # noqa: F401
    import traceback  # noqa: F401

    for name in modules:
        importlib.import_module(name)
    compile("def f(x: int = 1) -> list:\n    return [x for _ in range(x)]\n", "<warm>", "exec")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.collect()
    gc.disable()
    gc.freeze()
