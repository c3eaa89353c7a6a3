"""Runs inside a sandbox, with test files under ``/workspace/repo``; never imported by a worker.

Collects ``test_…`` functions and ``unittest`` cases, and runs one for each request of the host. With
``apart`` in the first request, imports of the named packages give stand-ins: every look-up and call
crosses to the solution's own sandbox as typed JSON. A stand-in for an object that is no builtin value
can be called and looked into, but neither compared nor taken for true: doing so ends the test.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

_FOLDER = "/workspace/repo"


class Misused(BaseException):
    """A stand-in was compared, or taken for true or false."""


class SolutionGone(BaseException):
    """The solution's sandbox has ended."""


class Remote:
    """A stand-in for an object on the other side."""

    def __init__(self, wall: Wall, handle: str, name: str) -> None:
        self.__dict__.update(_wall=wall, _handle=handle, __name__=name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._wall.ask({"do": "get", "target": self._handle, "name": name})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        sent = [self._wall.argument(value) for value in args]
        named = {name: self._wall.argument(value) for name, value in kwargs.items()}
        return self._wall.ask({"do": "call", "target": self._handle, "args": sent, "kwargs": named})

    def __getitem__(self, key: Any) -> Any:
        return self._wall.ask({"do": "item", "target": self._handle, "key": self._wall.argument(key)})

    def __len__(self) -> int:
        count = self._wall.ask({"do": "len", "target": self._handle})
        if type(count) is not int:
            raise Misused("a length was no integer")
        return count

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise Misused("attributes on the other side cannot be set")

    def _no(self, *others: Any) -> NoReturn:
        raise Misused("an object that is no plain value was compared, or taken for true or false")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _no
    __hash__ = None  # type: ignore[assignment]


class Wall:
    """The only way to the solution: requests through the host, who relays and checks them."""

    def __init__(self, exchange: Callable[[dict[str, Any]], dict[str, Any]], typed_json: Any) -> None:
        self._exchange = exchange
        self._typed_json = typed_json

    def argument(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Remote):
            return {"handle": value._handle}
        return {"value": self._typed_json.encode(value)}

    def ask(self, request: dict[str, Any]) -> Any:
        reply = self._exchange(request)
        if "gone" in reply:
            raise SolutionGone(reply["gone"])
        if "raised" in reply:
            raise _failure(reply["raised"], reply["text"])
        if "handle" in reply:
            return Remote(self, reply["handle"], reply["name"])
        return self._typed_json.decode(reply["value"])


def _failure(names: list[str], text: str) -> Exception:
    """The same kind of builtin error where it was one, so that ``except ValueError`` works here."""
    import builtins

    kinds = [getattr(builtins, name, None) for name in names]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    base = errors[0] if errors else Exception
    try:
        error = type(names[0] if names else "Error", (base,), {})(text)
    except TypeError:  # an error that wants other arguments, such as UnicodeDecodeError
        error = Exception(text)
    error.remote_names = tuple(names)
    return error  # type: ignore[no-any-return]


def _stand_in(wall: Wall, roots: list[str]) -> None:
    """Let ``import`` of the solution's packages give modules of stand-ins."""
    import importlib.machinery
    import sys
    import types

    class Module(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            held = self.__dict__.setdefault("_held", {})
            if name not in held:
                held[name] = getattr(self.__dict__["_remote"], name)
            return held[name]

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            if name.partition(".")[0] in roots:
                return importlib.machinery.ModuleSpec(name, Finder(), is_package=True)  # type: ignore[arg-type]
            return None

        def create_module(self, spec: Any) -> Any:
            return Module(spec.name)

        def exec_module(self, module: Any) -> None:
            module.__dict__["_remote"] = wall.ask({"do": "import", "name": module.__name__})

    sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]


def _collect(paths: list[str]) -> tuple[dict[str, Callable[[], str]], dict[str, str]]:
    """Tests by id, and why a file could not be loaded."""
    import sys
    import types

    tests: dict[str, Callable[[], str]] = {}
    broken: dict[str, str] = {}
    for path in paths:
        module = types.ModuleType(path.replace("/", ".").removesuffix(".py"))
        module.__file__ = f"{_FOLDER}/{path}"
        sys.modules[module.__name__] = module
        try:
            with open(module.__file__, encoding="utf-8") as stream:
                exec(compile(stream.read(), module.__file__, "exec"), module.__dict__)
        except BaseException as error:
            broken[path] = _described(error, path)
            continue
        for name, value in list(module.__dict__.items()):
            if name.startswith("test") and isinstance(value, types.FunctionType):
                tests[f"{path}::{name}"] = _plain(value)
            elif isinstance(value, type) and "unittest" in sys.modules:
                tests.update(_cases(path, name, value))
    return tests, broken


def _plain(function: Callable[[], Any]) -> Callable[[], str]:
    def run() -> str:
        return "passed" if function() is None else "failed"

    return run


def _cases(path: str, name: str, kind: type) -> dict[str, Callable[[], str]]:
    import unittest

    if not issubclass(kind, unittest.TestCase):
        return {}

    def one(method: str) -> Callable[[], str]:
        def run() -> str:
            result = unittest.TestResult()
            kind(method).run(result)
            problems = [*result.errors, *result.failures]
            if problems:
                raise AssertionError(problems[0][1].strip().splitlines()[-1])
            if result.skipped or result.expectedFailures or result.unexpectedSuccesses:
                return "skipped"
            return "passed" if result.testsRun == 1 else "failed"

        return run

    found = unittest.defaultTestLoader.getTestCaseNames(kind)
    return {f"{path}::{name}::{method}": one(method) for method in found}


def _described(error: BaseException, path: str) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = type(error).__name__
    lines, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f"{text[:200]}{f' (line {lines[-1]})' if lines else ''}"


def main() -> None:
    import json
    import os
    import sys

    sys.path.insert(0, "/workspace")
    import typed_json  # type: ignore[import-not-found]

    sys.path[0] = _FOLDER
    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    os.set_inheritable(channel, False)
    read, write, dumps, loads, leave = os.read, os.write, json.dumps, json.loads, os._exit
    pending = b""
    nonce = ""

    def send(frame: dict[str, Any]) -> None:
        line = dumps({**frame, "nonce": nonce}, allow_nan=False).encode() + b"\n"
        while line:
            line = line[write(channel, line) :]

    def hear() -> dict[str, Any]:
        nonlocal pending
        while b"\n" not in pending:
            chunk = read(channel, 65536)
            if not chunk:
                leave(0)
            pending += chunk
        line, _, pending = pending.partition(b"\n")
        return loads(line)  # type: ignore[no-any-return]

    def exchange(request: dict[str, Any]) -> dict[str, Any]:
        send({"ask": request})
        return hear()

    def verdict(name: str, test: Callable[[], str]) -> dict[str, str]:
        try:
            return {"status": test(), "reason": ""}
        except BaseException as error:
            skipped = any(kind.__name__ in ("SkipTest", "Skipped") for kind in type(error).__mro__)
            reason = _described(error, name.split("::")[0])
            return {"status": "skipped" if skipped else "failed", "reason": reason}

    start = hear()
    nonce = start["nonce"]
    if start["apart"]:
        _stand_in(Wall(exchange, typed_json), start["roots"])
    tests, broken = _collect(start["paths"])
    send({"ids": list(tests), "broken": broken})
    while True:
        request = hear()
        nonce = request["nonce"]
        send(verdict(request["run"], tests[request["run"]]))


if __name__ == "__main__":
    main()
