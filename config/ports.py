"""Which ports an embedded installation takes: its own, and one for each engine beside it."""

import argparse
import random
import socket

ENGINE_OFFSETS = (11, 12)


def ports_of(port: int) -> tuple[int, ...]:
    """The port itself first, then the engines'."""
    return (port, *(port + offset for offset in ENGINE_OFFSETS))


def port_argument(text: str) -> int:
    """An argument: a port whose engines' ports exist too, or 0."""
    highest = 65535 - max(ENGINE_OFFSETS)
    if not text.isdecimal() or int(text) > highest:
        raise argparse.ArgumentTypeError(f"choose a number between 1 and {highest}")
    return int(text)


def port_instead(port: int) -> int:
    """A port to propose instead of one that is taken."""
    return port + 100 if port + 100 + max(ENGINE_OFFSETS) <= 65535 else port - 100


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports() -> int | None:
    """A port that is free together with those of its engines. Looked for from anywhere: two that start at
    the same time would take the same first one."""
    ports = range(8100, 9900, 20)
    start = random.randrange(len(ports))
    found = (port for port in (*ports[start:], *ports[:start]) if all(map(port_is_free, ports_of(port))))
    return next(found, None)
