"""The command ``flywheel``: the client's subcommands, and ``packs``, which runs on this machine."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["packs"]:
        from config.packs_command import main as packs

        return packs(words[1:])
    from clients.flywheel.cli import main as client

    return client(words)
