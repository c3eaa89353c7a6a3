"""Where the agent's process begins: on a channel that it was given, or as a zygote.

``<read fd> <write fd> <options as JSON>`` serves one sandbox on that channel, in the namespaces in
which it was started. ``zygote <control fd> <options>`` forks a sandbox for each message.
"""

from __future__ import annotations

import json
import os
import sys

from . import kernel
from .birth import Become, Sheath
from .frames import Stream, say_hello
from .programs import Programs
from .python_program import rehearse_program
from .serve import Agent
from .warm import warm_up
from .zygote import Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TIMES = 10  # a millisecond, after which each program's start is that much shorter


def main() -> Callable[[], None] | None:
    """Returns only in a process that has become a program: what to call then."""
    try:
        if sys.argv[1] == "zygote":
            Zygote(int(sys.argv[2]), json.loads(sys.argv[3])).serve()
        else:
            _serve(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
    except Become as become:
        program = become.program
    else:
        return None
    return program


def _serve(read: int, write: int, options: dict[str, Any]) -> None:
    """``bytes`` bounds what an archive may hold; ``hello`` sends this process's handle along. Whoever
    started this process has taken all capabilities away."""
    moves = bool(options.get("moves"))
    moved = {descriptor: _aside(descriptor) for descriptor in {read, write}}
    read, write = moved[read], moved[write]
    warm = warm_up(options.get("preimport", []))
    kernel.set_dumpable(False)
    sheath = Sheath(workspace="/workspace", seccomp=None, drops=False, warm=warm)
    for _ in range(_TIMES):
        rehearse_program(warm)
    say_hello(write, handle=bool(options.get("hello")))
    stream = Stream(read, write)
    programs = Programs(stream, sheath)
    programs.begin()
    agent = Agent(stream, programs, sheath.workspace, mounts=False)
    agent.serve(int(options["bytes"]), moves=moves)


def _aside(descriptor: int) -> int:
    """Away from the numbers of the standard streams, which then lead nowhere."""
    moved = os.dup(descriptor)
    if descriptor <= 2:
        nowhere = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, descriptor, inheritable=True)
        os.close(nowhere)
    else:
        os.close(descriptor)
    return moved
