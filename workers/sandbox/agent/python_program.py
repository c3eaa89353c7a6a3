"""A Python program inside a process that was forked, not started, and behaves as if it had been.

Forking saves the interpreter's start and the imports that the first process already made. The
program gets a real ``__main__``, its own ``sys.argv``, streams and environment, and the ends that
an interpreter gives: threads are waited for, ``atexit`` runs, files left open are written.
What cannot be had this way is not tried: ``plan`` says None and a real interpreter is started.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import time
import types
from importlib.machinery import BuiltinImporter, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FLAGS = ("-s", "-S", "-P", "-B")
# Variables that an interpreter reads at its start but that a forked one has read already.
_ADJUSTABLE = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE")
_AT_START = ("LANG", "LC_ALL", "LC_CTYPE", "LD_PRELOAD", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")


class Plan:
    """``kind`` is ``-c``, ``-m`` or ``script``; ``what`` the code, module or path."""

    def __init__(self, kind: str, what: str, arguments: list[str], *, unbuffered: bool) -> None:
        self.kind = kind
        self.what = what
        self.arguments = arguments
        self.unbuffered = unbuffered


class Warm:
    """What this process was before it ran any program, to be compared and restored."""

    def __init__(self, own: str) -> None:
        """``own`` is the package that the agent itself is."""
        self.environment = dict(os.environ)
        self.own = own
        self.path = list(sys.path)
        standard = {"builtins", "sys", "os", "io", "abc", "codecs", "encodings", "posix", "stat", "posixpath"}
        self.modules = {name.partition(".")[0] for name in sys.modules} - standard

    def plan(self, argv: list[str], environment: dict[str, str]) -> Plan | None:
        """How to run ``python argv[1:]`` by forking; None where only a fresh interpreter is the same."""
        for name, value in environment.items():
            if name.startswith("PYTHON") and name not in _ADJUSTABLE:
                return None
            if name in _AT_START and value != self.environment.get(name):
                return None
        if environment.get("PYTHONHASHSEED") != self.environment.get("PYTHONHASHSEED"):
            return None
        if any(name not in environment for name in _AT_START if name in self.environment):
            return None
        for folder in self.extra_path(environment):
            if self._shadows(folder):
                return None
        return _parsed(argv, bool(environment.get("PYTHONUNBUFFERED")))

    def extra_path(self, environment: dict[str, str]) -> list[str]:
        """What PYTHONPATH adds to that of the warm interpreter."""
        own = self.environment.get("PYTHONPATH", "").split(":")
        return [part for part in environment.get("PYTHONPATH", "").split(":") if part and part not in own]

    def _shadows(self, folder: str) -> bool:
        """A module there that is imported already would not be found again."""
        try:
            names = {name.partition(".")[0] for name in os.listdir(folder)}
        except OSError:
            return False
        return not names.isdisjoint(self.modules)


def _parsed(argv: list[str], unbuffered: bool) -> Plan | None:
    rest = argv[1:]
    while rest and rest[0] in (*FLAGS, "-u"):
        unbuffered = unbuffered or rest[0] == "-u"
        rest = rest[1:]
    if not rest or rest[0] == "-":
        return None
    if rest[0] in ("-c", "-m"):
        if len(rest) < 2:
            return None
        return Plan(rest[0], rest[1], rest[2:], unbuffered=unbuffered)
    if rest[0].startswith("-") or not os.path.isfile(rest[0]):
        return None
    return Plan("script", rest[0], rest[1:], unbuffered=unbuffered)


def get_ready(warm: Warm) -> None:
    """What a forked process can do before it knows its program: forget the agent, have fresh streams."""
    for name in [name for name in sys.modules if name.startswith(warm.own)]:
        if name.partition(".")[0] == warm.own:
            del sys.modules[name]
    sys.path[:] = [entry for entry in warm.path if not entry.endswith("/agent.zip")]
    _stream(1, unbuffered=False)
    _stream(2, unbuffered=False)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def program(plan: Plan, environment: dict[str, str], extra_path: list[str]) -> Callable[[], None]:
    """Make this process, which is ready, a fresh interpreter; what is returned runs the program and never
    returns. Call it from the bottom of the stack, outside any ``except``."""
    _adopt(environment)
    sys.path[:0] = extra_path
    sys.orig_argv = [sys.executable, *FLAGS, plan.what, *plan.arguments]
    first = {"-c": "-c", "-m": "-m"}.get(plan.kind, plan.what)
    sys.argv = [first, *plan.arguments]
    _stream(0, unbuffered=False)
    if plan.unbuffered:
        _stream(1, unbuffered=True)
        _stream(2, unbuffered=True)
    main = sys.modules["__main__"]
    baseline = set(sys.modules)
    gc.enable()
    leave = os._exit

    def run() -> None:
        code = _guarded(lambda: _run(plan, main))
        code = _finish(code, main, baseline)
        leave(code)

    return run


def rehearse_program(warm: Warm) -> None:
    """Run the parts of all this that change nothing."""
    environment = dict(warm.environment)
    warm.plan(["python", "-c", "pass"], environment)
    warm.plan(["python", "-m", "nothing"], environment)
    warm.extra_path(environment)
    _adopt(environment)
    kept = sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__
    for descriptor in (0, 1, 2):
        _stream(descriptor, unbuffered=False)
    _flush()
    sys.stdin, sys.stdout, sys.stderr = kept[:3]
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = kept[3:]  # type: ignore[misc]
    main = types.ModuleType("rehearsal")
    _guarded(lambda: _run(Plan("-c", "pass", [], unbuffered=False), main))
    _clear(main.__dict__)


def _adopt(environment: dict[str, str]) -> None:
    """Set what differs: each call costs."""
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    if "TZ" in environment:
        time.tzset()


def _run(plan: Plan, main: types.ModuleType) -> None:
    if plan.kind == "-m":
        import runpy

        runpy._run_module_as_main(plan.what)  # type: ignore[attr-defined]
        return
    if plan.kind == "-c":
        main.__loader__ = BuiltinImporter  # type: ignore[assignment]
        source: Any = plan.what
        name = "<string>"
    else:
        name = os.path.abspath(plan.what)
        main.__file__ = name
        main.__loader__ = SourceFileLoader("__main__", name)
        main.__dict__["__cached__"] = None
        with open(name, "rb") as stream:
            source = stream.read()
    exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)


def _guarded(call: Callable[[], None]) -> int:
    """The exit code of an interpreter that runs ``call``; what is raised is shown as it shows it."""
    try:
        call()
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BaseException as error:
        # The innermost frames that are ours: _guarded, the lambda, _run (and runpy's stay, as always).
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        interrupted = isinstance(error, KeyboardInterrupt)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if interrupted else 1
    return 0


def _exit_code(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stdout.flush()
        print(code, file=sys.stderr)
    except Exception:
        pass
    return 1


def _finish(code: int, main: types.ModuleType, baseline: set[str]) -> int:
    """The end of an interpreter, in its order."""
    threads = sys.modules.get("threading")
    if threads is not None:
        shut = getattr(threads, "_shutdown", None)
        if shut is not None:
            _quiet(shut)
    _quiet(atexit._run_exitfuncs)
    failed = _flush()
    _clear(main.__dict__)
    for name in [name for name in sys.modules if name not in baseline]:
        module = sys.modules.pop(name, None)
        if module is not None and isinstance(getattr(module, "__dict__", None), dict):
            _clear(module.__dict__)
    _quiet(gc.collect)
    return 120 if failed or _flush() else code


def _quiet(call: Callable[[], Any]) -> None:
    try:
        call()
    except BaseException as error:
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except BaseException:
            return


def _clear(names: dict[str, Any]) -> None:
    for wanted in (True, False):  # as the interpreter does: names with one underscore first
        for name in list(names):
            private = name.startswith("_") and not name.startswith("__")
            if private == wanted and name != "__builtins__":
                try:
                    names[name] = None
                except BaseException:
                    continue


def _flush() -> bool:
    failed = False
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException as error:
            failed = failed or name == "stdout"
            if name == "stdout" and sys.stderr is not None:
                text = f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}"
                _quiet(lambda text=text: print(text, file=sys.stderr))  # type: ignore[misc]
    return failed


def _stream(descriptor: int, *, unbuffered: bool) -> None:
    """A standard stream as an interpreter makes it under C.UTF-8."""
    name, mode = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))[descriptor]
    raw = io.FileIO(descriptor, mode, closefd=False)
    raw.name = f"<{name}>"
    buffered: Any = raw
    if mode == "r":
        buffered = io.BufferedReader(raw)
    elif not unbuffered:
        buffered = io.BufferedWriter(raw)
    text = io.TextIOWrapper(
        buffered,
        encoding="utf-8",
        errors="backslashreplace" if name == "stderr" else "surrogateescape",
        newline="\n",
        line_buffering=name == "stderr",
        write_through=unbuffered,
    )
    text.mode = mode  # type: ignore[misc]
    setattr(sys, name, text)
    setattr(sys, f"__{name}__", text)
