"""A forked Python program against a started one: the same output, errors and end, program by program."""

import asyncio
import re
import textwrap
from collections.abc import Sequence

import pytest

from tests.workers.sandbox.programs import SMALL
from workers.sandbox import ExecResult, Limits, SandboxSpec
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.protocol import MIB

LARGER = Limits(cpu_s=5, memory_bytes=256 * MIB, processes=32)

PROGRAMS = {
    "what it is": """
        import sys
        main = sys.modules["__main__"]
        print(__name__, __file__, __spec__, __package__, __doc__, __cached__, type(__loader__).__name__)
        print(sys.argv, sys.path, sys.flags, main.__dict__ is globals(), sys.executable)
        print(sorted(name for name in globals() if name != "main"))
    """,
    "streams": """
        import sys
        for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__):
            print(stream.name, stream.mode, stream.encoding, stream.errors, stream.newlines, stream.fileno(),
                  stream.line_buffering, stream.write_through, type(stream.buffer).__name__, stream.isatty())
        print(repr(sys.stdin.read()), sys.stdin.buffer.raw.name)
        sys.stderr.write("half a line")
    """,
    "an exception": """
        def inner(x): raise KeyError(x)
        def outer():
            try: inner(1)
            except KeyError as error: raise ValueError("outer") from error
        outer()
    """,
    "an exception while one is handled": "try: 1/0\nexcept ZeroDivisionError: raise",
    "a syntax error": "def f(:\n  pass",
    "a syntax error in another file": "exec(compile('x = (', 'other.py', 'exec'))",
    "exit without a code": "import sys; print('x', end=''); sys.exit()",
    "exit 3": "raise SystemExit(3)",
    "exit -1": "raise SystemExit(-1)",
    "exit 300": "raise SystemExit(300)",
    "exit with a text": "import sys; print('first'); sys.exit('the reason')",
    "exit with a tuple": "raise SystemExit((1, 2))",
    "interrupted": "raise KeyboardInterrupt",
    "own excepthook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print("hook", kind.__name__, trace.tb_lineno)
        1/0
    """,
    "unittest": """
        import unittest
        class Sums(unittest.TestCase):
            def test_right(self): self.assertEqual(1 + 1, 2)
            def test_wrong(self): self.assertEqual(1 + 1, 3)
        unittest.main()
    """,
    "pickle": """
        import pickle
        class Thing:
            def __eq__(self, other): return type(self) is type(other)
        text = pickle.dumps(Thing())
        print(text, pickle.loads(text) == Thing(), Thing.__module__)
    """,
    "processes": """
        import multiprocessing
        def square(x): return x * x
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool: print(pool.map(square, range(4)))
    """,
    "ends": """
        import atexit, sys, threading, time
        class Last:
            def __del__(self): print("deleted")
        atexit.register(print, "registered first")
        atexit.register(print, "registered last")
        thread = threading.Thread(target=lambda: (time.sleep(0.05), print("thread done")))
        thread.start()
        kept = Last()
        left = open("left-open.txt", "w"); left.write("written at the end")
        print("main done")
    """,
    "an atexit function that fails": "import atexit\natexit.register(lambda: 1/0)\nprint('done')",
    "a closed stdout": "import sys, os\nprint('lost'); os.close(1)",
    "a thread that fails": "import threading\nt = threading.Thread(target=lambda: 1/0); t.start(); t.join()",
    "a fork beside a thread": """
        import os, sys, threading
        going = threading.Event()
        threading.Thread(target=going.wait).start()
        child = os.fork()
        if child == 0:
            print(threading.active_count(), threading.current_thread() is threading.main_thread(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(threading.active_count())
        going.set()
    """,
    "signals": """
        import signal
        for number in sorted(signal.valid_signals()):
            found = signal.getsignal(number)
            print(int(number), int(found) if isinstance(found, int) else found.__name__)
    """,
    "warnings": "import warnings\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)",
    "environment": """
        import os
        print(sorted({**os.environ, "PWD": ""}.items()))
        os.environ["NEW"] = "1"
        print(os.getenv("NEW"))
    """,
    "descriptors": """
        import os
        found = []
        for number in range(0, 1000):
            try: os.fstat(number); found.append(number)
            except OSError: pass
        print(found)
    """,
    "the agent cannot be imported": "import flywheel_agent",
    "garbage": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.get_debug())",
    "dataclasses and typing": """
        import dataclasses, typing
        @dataclasses.dataclass
        class Point: x: int; y: "typing.Optional[int]" = None
        print(typing.get_type_hints(Point), Point(1), __annotations__)
    """,
    "asyncio": "import asyncio\nasync def main(): await asyncio.sleep(0); print('ran')\nasyncio.run(main())",
    "a child process": """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout)
    """,
}


def both(
    backend: BubblewrapBackend, words: Sequence[str], *, files: dict[str, bytes], **more: object
) -> tuple[ExecResult, ExecResult]:
    """``python words`` forked from the warm interpreter, and started by a shell."""
    real = ["/bin/sh", "-c", 'exec python "$@"', "sh", *words]

    async def each(argv: list[str]) -> ExecResult:
        sandbox = await backend.create(SandboxSpec(limits=LARGER))
        try:
            await sandbox.put(files)
            return await sandbox.exec(argv, stdin=b"line one\r\nline two", **more)  # type: ignore[arg-type]
        finally:
            await sandbox.close()

    async def all() -> tuple[ExecResult, ExecResult]:
        return await each(["python", *words]), await each(real)

    return asyncio.run(all())


def end(result: ExecResult) -> tuple[object, ...]:
    errors = re.sub(r"in \d\.\d\d\ds", "in a moment", result.stderr.text)
    errors = re.sub(r"0x[0-9a-f]+|Thread-\d+", "-", errors)
    return result.status, result.exit_code, result.signal, result.stdout.text, errors


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forked_program_is_the_same_as_a_started_one(backend: BubblewrapBackend, name: str) -> None:
    source = textwrap.dedent(PROGRAMS[name]).encode()

    forked, started = both(backend, ["program.py", "one", "-two"], files={"program.py": source})

    assert end(forked) == end(started)


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "import sys; print(sys.argv, __name__, '__file__' in globals(), __loader__)", "x"],
        ["-c", "1/0"],
        ["-u", "-c", "import sys; print(sys.stdout.write_through, type(sys.stdout.buffer).__name__)"],
        ["-m", "json.tool"],
        ["-m", "unittest", "-v", "tested"],
        ["-m", "package", "argument"],
        ["-m", "missing"],
        ["package"],
        ["-"],
        ["missing.py"],
        ["-O", "-c", "assert False; print(__debug__)"],
        ["-I", "-c", "import sys; print(sys.flags.isolated)"],
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_every_form_of_the_command_line_is_the_same(backend: BubblewrapBackend, words: list[str]) -> None:
    tests = "import unittest\nclass T(unittest.TestCase):\n    def test_one(self): self.assertTrue(1)\n"
    main = "import sys\nprint(__name__, sys.argv, __package__, __spec__.name if __spec__ else None)\n"
    files = {"tested.py": tests, "package/__init__.py": "", "package/__main__.py": main}

    forked, started = both(
        backend,
        words,
        files={path: text.encode() for path, text in files.items()},
        env={"PYTHONPATH": "/workspace"},
    )

    assert end(forked) == end(started)


def test_a_module_of_the_workspace_is_found_before_one_that_is_warm(backend: BubblewrapBackend) -> None:
    forked, started = both(
        backend,
        ["-c", "import json; print(json.mine)"],
        files={"json.py": b"mine = 'the workspace'"},
        env={"PYTHONPATH": "/workspace"},
    )

    assert forked.stdout.text == started.stdout.text == "the workspace\n"


def test_a_seed_gives_the_hashes_that_an_interpreter_of_that_seed_gives(backend: BubblewrapBackend) -> None:
    code = ["-c", "import os; print(hash('text'), os.environ['FLYWHEEL_SEED'])"]

    first, again = both(backend, code, files={}, seed=7)
    usual, _ = both(backend, code, files={})

    assert first.stdout.text == again.stdout.text
    assert usual.stdout.text != first.stdout.text


def test_programs_of_one_interpreter_do_not_share_chance(backend: BubblewrapBackend) -> None:
    code = ["-c", "import random, uuid; print(random.random(), uuid.uuid4())"]

    first, second = both(backend, code, files={})

    assert first.stdout.text != second.stdout.text


def test_a_program_that_changes_its_interpreter_changes_no_other(backend: BubblewrapBackend) -> None:
    vandal = "import os, sys, builtins, json\nos._exit = builtins.print = json.dumps = None\nsys.path = []"

    async def one_after_the_other() -> list[str]:
        sandbox = await backend.create(SandboxSpec(limits=SMALL))
        try:
            results = [
                await sandbox.exec(["python", "-c", code])
                for code in (vandal, "import json; print(json.dumps(1))")
            ]
        finally:
            await sandbox.close()
        return [result.stdout.text for result in results]

    assert asyncio.run(one_after_the_other()) == ["", "1\n"]


def test_a_file_left_open_is_written_at_the_end(backend: BubblewrapBackend) -> None:
    code = "import sys\ndef main():\n    left = open('left', 'w'); left.write('all'); sys.exit(3)\nmain()"

    async def left() -> bytes:
        sandbox = await backend.create(SandboxSpec(limits=SMALL))
        try:
            await sandbox.exec(["python", "-c", code])
            return await sandbox.get("left")
        finally:
            await sandbox.close()

    assert asyncio.run(left()) == b"all"


def test_modules_imported_ahead_are_there_and_what_cannot_be_imported_is_said(
    backend: BubblewrapBackend,
) -> None:
    from workers.sandbox import SandboxUnavailable

    probe = ["python", "-c", "import sys; print('decimal' in sys.modules)"]

    warm = asyncio.run(backend.run(SandboxSpec(limits=SMALL, preimport=("decimal",)), probe))
    cold = asyncio.run(backend.run(SandboxSpec(limits=SMALL), probe))

    assert (warm.stdout.text, cold.stdout.text) == ("True\n", "False\n")
    with pytest.raises(SandboxUnavailable, match="no_such_module"):
        asyncio.run(backend.create(SandboxSpec(limits=SMALL, preimport=("no_such_module",))))
