"""Making an interpreter warm before anything is forked from it, and as small as it can be.

What a fork costs is counted in pages: those that it must copy the table of, and those that it writes,
be it only a reference count. So nothing is loaded that is not needed, and what is needed is ready.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import importlib
import linecache  # noqa: F401
import os
import runpy  # noqa: F401
import sys
import traceback  # noqa: F401

from .python_program import Warm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OWN = __name__.partition(".")[0]


def warm_up(modules: Sequence[str]) -> Warm:
    """Import and use what programs need anyway, so that every fork has it. From here on the agent's own
    modules cannot be imported: programs shall not find them."""
    for name in ("LD_BIND_NOW", "PWD"):  # what bwrap and the host set for this process alone
        os.environ.pop(name, None)
    _import_threading()
    for name in modules:
        importlib.import_module(name)
    compile("def f(x: int = 1) -> list:\n    return [x for _ in range(x)]\n", "<warm>", "exec")
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    sys.path[:] = [entry for entry in sys.path if not entry.endswith("/agent.zip")]
    own = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == _OWN}
    warm = Warm(own)
    gc.collect()
    gc.disable()
    gc.freeze()
    return warm


def _import_threading() -> None:
    """``threading`` puts its state in order after every fork, which costs more than the fork itself. Of
    this process there has only ever been one thread, so there is nothing to put in order until a program
    runs; from then on its forks do as always."""
    if "threading" in sys.modules:
        return
    real = os.register_at_fork

    def register(**hooks: Callable[[], None]) -> None:
        if hooks.keys() != {"after_in_child"}:
            return real(**hooks)
        tidy = hooks["after_in_child"]
        real(after_in_child=lambda: tidy() if Warm.runs_program else None)

    os.register_at_fork = register  # type: ignore[assignment]
    try:
        importlib.import_module("threading")
    finally:
        os.register_at_fork = real
