"""The warm interpreter runs what every sandbox will run, before any is forked from it.

Python adapts code that has run a few times and writes that into it. Done once here, every fork has
it; done in each fork, it would cost time and private memory there.
"""

from __future__ import annotations

import json
import os

from . import sockets
from .birth import Sheath
from .frames import Stream, pack
from .programs import Programs
from .python_program import Warm, rehearse_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIMES = 20
_PROGRAM: dict[str, Any] = {"argv": ["/bin/true"]}


def rehearse(sheath: Sheath, warm: Warm) -> None:
    """Runs a few programs that do nothing, as this process's children: it must have no others."""
    ours, theirs = sockets.pair()
    stream = Stream(theirs, theirs)
    programs = Programs(stream, sheath)
    programs.begin()
    words = json.dumps({**_PROGRAM, "env": dict(os.environ)}).encode()
    most = 1 << 40
    limits = {"cpu": 60, "address": most, "files": 64, "bytes": most, "stack": 8 << 20, "processes": 4096}
    request = {"op": "exec", "id": 1, "output": most, "limits": limits, "words": len(words)}
    for _ in range(_TIMES):
        os.write(ours, pack(request, words))
        header, body = stream.receive(programs.prepare)
        programs.run(header, body, b"")
        os.read(ours, 1 << 16)
        rehearse_program(warm)
    programs.close()
    os.close(ours)
    os.close(theirs)
