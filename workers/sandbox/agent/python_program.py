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
_HERE = (lambda: None).__code__.co_filename  # as tracebacks name this file


class Plan:
    """``kind`` is ``-c``, ``-m`` or ``script``; ``what`` the code, module or path."""

    def __init__(self, kind: str, what: str, arguments: list[str], *, unbuffered: bool) -> None:
        self.differences: list[str] = []  # of the environment, by name
        self.kind = kind
        self.what = what
        self.arguments = arguments
        self.unbuffered = unbuffered


class Warm:
    """What this process was before it ran any program, to be compared and restored."""

    runs_program = False

    def __init__(self, own: dict[str, types.ModuleType]) -> None:
        """``own`` are the agent's modules, kept here alone."""
        self.own = own
        self.environment = dict(os.environ)
        for descriptor in (0, 1, 2):
            _adopt_stream(descriptor, _as_in_a_program(descriptor))
        main = types.ModuleType("__main__")
        main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
        sys.modules["__main__"] = main
        self.loaded = frozenset(sys.modules)
        self.last_loaded = next(reversed(sys.modules))
        standard = {"builtins", "sys", "os", "io", "abc", "codecs", "encodings", "posix", "stat", "posixpath"}
        self.modules = {name.partition(".")[0] for name in sys.modules} - standard
        self.modules.update(name.partition(".")[0] for name in own)

    def plan(self, argv: list[str], environment: dict[str, str]) -> Plan | None:
        """How to run ``python argv[1:]`` by forking; None where only a fresh interpreter is the same."""
        differences = self._differences(environment)
        for name in differences:
            if name.startswith("PYTHON") and name not in _ADJUSTABLE:
                return None
            if name in _AT_START or name == "PYTHONHASHSEED":
                return None
        for folder in self.extra_path(environment):
            if self._shadows(folder):
                return None
        plan = _parsed(argv, bool(environment.get("PYTHONUNBUFFERED")))
        if plan is not None:
            plan.differences = differences
        return plan

    def _differences(self, environment: dict[str, str]) -> list[str]:
        """The names of what is not as it is here."""
        usual = self.environment
        changed = [name for name, value in environment.items() if usual.get(name) != value]
        return [*changed, *(usual.keys() - environment)]

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


def get_ready() -> None:
    """What a forked process can do before it knows its program."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def program(plan: Plan, environment: dict[str, str], warm: Warm, *, stdin: bool) -> Callable[[], None]:
    """Make this process, which is ready, a fresh interpreter; what is returned runs the program and never
    returns. Call it from the bottom of the stack, outside any ``except``."""
    _adopt(environment, plan.differences)
    sys.path[:0] = warm.extra_path(environment)
    sys.orig_argv = [sys.executable, *FLAGS, plan.what, *plan.arguments]
    first = {"-c": "-c", "-m": "-m"}.get(plan.kind, plan.what)
    sys.argv = [first, *plan.arguments]
    if stdin:
        _adopt_stream(0, _stream(0, unbuffered=False))
    if plan.unbuffered:
        for descriptor in (1, 2):
            _adopt_stream(descriptor, _stream(descriptor, unbuffered=True))
    main = sys.modules["__main__"]
    gc.enable()
    Warm.runs_program = True
    leave = os._exit

    def run() -> None:
        code = _guarded(lambda: _run(plan, main))
        code = _finish(code, main, warm)
        leave(code)

    return run


def rehearse_program(warm: Warm) -> None:
    """Run the parts of all this that change nothing."""
    environment = dict(warm.environment)
    warm.plan(["python", "-c", "pass"], environment)
    warm.plan(["python", "-m", "nothing"], environment)
    warm.extra_path(environment)
    _adopt(environment, list(environment))
    _flush()
    main = types.ModuleType("rehearsal")
    _guarded(lambda: _run(Plan("-c", "pass", [], unbuffered=False), main))
    _clear(main.__dict__)


def _adopt(environment: dict[str, str], differences: list[str]) -> None:
    """Set what differs: each call costs."""
    for name in differences:
        if name in environment:
            os.environ[name] = environment[name]
        else:
            del os.environ[name]
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
        while trace is not None and trace.tb_frame.f_code.co_filename == _HERE:
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


def _finish(code: int, main: types.ModuleType, warm: Warm) -> int:
    """The end of an interpreter, in its order."""
    threads = sys.modules.get("threading")
    shut = getattr(threads, "_shutdown", None)
    if shut is not None and (atexit._ncallbacks() or not _had_one_thread(threads)):
        _quiet(shut)
    _quiet(atexit._run_exitfuncs)
    failed = _flush()
    _clear(main.__dict__)
    for name in _loaded_since(warm):
        module = sys.modules.pop(name, None)
        if module is not None and isinstance(getattr(module, "__dict__", None), dict):
            _clear(module.__dict__)
    # What there was before is frozen, so without a collection yet all is in the youngest generation.
    _quiet(lambda: gc.collect(2 if any(gc.get_count()[1:]) else 0))
    return 120 if failed or _flush() else code


def _had_one_thread(threads: Any) -> bool:
    """Nobody is to be waited for, and nobody would see that the main thread was not told to stop."""
    try:
        only_main = len(threads._active) == 1 and len(threads._shutdown_locks) <= 1
        return only_main and not threads._threading_atexits
    except Exception:
        return False  # the program put something else in its place


def _loaded_since(warm: Warm) -> list[str]:
    if len(sys.modules) == len(warm.loaded) and next(reversed(sys.modules)) == warm.last_loaded:
        return []  # without touching each name
    return [name for name in sys.modules if name not in warm.loaded]


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


def _stream(descriptor: int, *, unbuffered: bool) -> io.TextIOWrapper:
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
    return text


def _adopt_stream(descriptor: int, stream: io.TextIOWrapper) -> None:
    name = ("stdin", "stdout", "stderr")[descriptor]
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def _as_in_a_program(descriptor: int) -> io.TextIOWrapper:
    """A stream looks at its descriptor when it is made, so something of the kind is put there first."""
    if descriptor == 0:
        sample = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    else:
        end, sample = os.pipe2(os.O_CLOEXEC)
        os.close(end)
    kept = os.dup(descriptor)
    os.dup2(sample, descriptor)
    try:
        return _stream(descriptor, unbuffered=False)
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)
        os.close(sample)
