"""Ports for what a test starts in a process of its own, and one where nobody listens.

The kernel hands out ports from its own range to every outgoing connection, so one that was found there
free a moment ago may be taken by now, or answer itself. These lie below it.
"""

import random
import socket

NOBODY = 9  # "discard": below the range, and no service of today

_draw = random.SystemRandom()  # not the seeded one: two test processes would try the same ports


def free_port(*beside: int) -> int:
    """A port that is free, together with those at the offsets ``beside``."""
    for _ in range(200):
        port = _draw.randrange(12_000, 30_000)
        if all(is_free(port + offset) for offset in (0, *beside)):
            return port
    raise AssertionError("no free port was found")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
