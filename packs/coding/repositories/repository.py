"""What a small repository is, and what its own code gives for a call.

Modules are loaded from texts, in a name space of their own: nothing is written, and the process's
modules stay as they are.
"""

import builtins
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Bug:
    """``old`` stands exactly once in the file; ``new`` is the bug. ``issue`` is what a user noticed."""

    path: str
    old: str
    new: str
    issue: str


@dataclass(frozen=True)
class Check:
    """One thing worth testing: ``draw`` makes an expression over the names that ``imports`` brings."""

    name: str
    imports: str
    draw: Callable[[Random], str]


@dataclass(frozen=True)
class Repository:
    package: str
    about: str
    files: Mapping[str, str]
    bugs: tuple[Bug, ...]
    checks: tuple[Check, ...]


class Loaded:
    """A repository's modules, executed on first import. Own code only, never an answer's."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._modules: dict[str, types.ModuleType] = {}
        self._spaces: dict[str, dict[str, Any]] = {}

    def value(self, imports: str, expression: str) -> Any:
        """What ``expression`` gives after ``imports``; an error as ``("raised", its name)``."""
        if imports not in self._spaces:
            self._spaces[imports] = {"__builtins__": self._builtins()}
            exec(compile(imports, "<imports>", "exec"), self._spaces[imports])
        try:
            return eval(expression, self._spaces[imports])
        except Exception as error:
            return ("raised", type(error).__name__)

    def _builtins(self) -> dict[str, Any]:
        return {**vars(builtins), "__import__": self._import}

    def _import(
        self, name: str, space: Any = None, local: Any = None, wanted: Any = (), level: int = 0
    ) -> Any:
        if f"{name.replace('.', '/')}.py" in self._files:
            return self._module(name)
        return builtins.__import__(name, space, local, wanted, level)

    def _module(self, name: str) -> types.ModuleType:
        if name not in self._modules:
            self._modules[name] = module = types.ModuleType(name)
            module.__dict__["__builtins__"] = self._builtins()
            source = self._files[f"{name.replace('.', '/')}.py"]
            exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        return self._modules[name]


def planted(files: Mapping[str, str], bugs: tuple[Bug, ...]) -> dict[str, str]:
    """``files`` with the bugs in place. Raises ValueError where a bug does not fit exactly once."""
    broken = dict(files)
    for bug in bugs:
        if broken[bug.path].count(bug.old) != 1:
            raise ValueError(f"{bug.path}: {bug.old!r} stands {broken[bug.path].count(bug.old)} times")
        broken[bug.path] = broken[bug.path].replace(bug.old, bug.new)
    return broken
