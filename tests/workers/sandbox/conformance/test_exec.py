"""Programs: arguments, streams, environment, results, and Python that behaves as Python does."""

import asyncio
import uuid

import pytest

from tests.waiting import becomes
from tests.workers.sandbox.conformance.conftest import SPEC, py, run
from tests.workers.sandbox.programs import SMALL, processes_with
from workers.sandbox.protocol import OutputEvent, SandboxGone, SandboxSpec, SandboxUnavailable
from workers.sandbox.worker_pool import WorkerPool


def test_a_program_gets_its_stdin_and_files_and_starts_in_its_workspace(pool: WorkerPool) -> None:
    result = run(
        pool,
        "import sys; print(sys.stdin.read(), open('folder/given.txt').read())",
        stdin=b"x" * 200_000,
        files={"folder/given.txt": b"content"},
    )

    assert (result.status, result.exit_code) == ("ok", 0)
    assert result.stdout.total == 200_000 + len(" content\n")
    assert result.stdout.tail.endswith(b"content\n")


async def test_arguments_arrive_as_they_are(pool: WorkerPool) -> None:
    odd = ["", "two words", "$HOME", "*", "-c", "é\n", "'\""]

    async with pool.acquire(SPEC) as box:
        result = await box.exec(["python", "-c", "import sys; print(sys.argv)", *odd])
        shell = await box.exec(["/bin/sh", "-c", 'printf "%s|" "$@"', "sh", *odd])

    assert result.stdout.text == f"{['-c', *odd]!r}\n"
    assert shell.stdout.text == "|".join(odd) + "|"


async def test_exit_code_and_signal_are_told_apart(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        left = await py(box, "raise SystemExit(3)")
        killed = await py(box, "import os; os.kill(os.getpid(), 11)")
        shell = await box.exec(["/bin/sh", "-c", "exit 130"])

    assert (left.status, left.exit_code, left.signal) == ("nonzero", 3, None)
    assert (killed.status, killed.exit_code, killed.signal) == ("signal", None, 11)
    assert (shell.status, shell.signal) == ("signal", 2)


async def test_a_program_that_does_not_exist_is_not_an_error_of_the_host(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        result = await box.exec(["/no/such/program"])

    assert (result.status, result.exit_code) == ("nonzero", 127)


async def test_the_environment_holds_what_was_given_and_nothing_of_the_host(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYWHEEL_SECRET", "hunter2")
    spec = SandboxSpec(limits=SMALL, env=(("FROM_SPEC", "1"), ("BOTH", "spec")))

    async with pool.acquire(spec) as box:
        code = "import os; print(sorted(os.environ.items()))"
        given = (await py(box, code, env={"FROM_EXEC": "2", "BOTH": "exec"}, seed=7)).stdout.text
        after = (await py(box, code)).stdout.text

    for name, value in (("FROM_SPEC", "1"), ("FROM_EXEC", "2"), ("BOTH", "exec"), ("FLYWHEEL_SEED", "7")):
        assert str((name, value)) in given
    assert "hunter2" not in given
    assert "FROM_EXEC" not in after


async def test_runs_with_one_seed_repeat_themselves_and_other_seeds_differ(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        said = [(await py(box, "print(hash('seed'))", seed=seed)).stdout.data for seed in (0, 0, 5, 5)]
    async with pool.acquire(SPEC) as other:
        again = (await py(other, "print(hash('seed'))")).stdout.data

    assert said[0] == said[1] == again
    assert said[2] == said[3] != said[0]


async def test_output_is_heard_while_the_program_runs(pool: WorkerPool) -> None:
    heard: list[OutputEvent] = []
    first = asyncio.Event()

    def hear(event: OutputEvent) -> None:
        heard.append(event)
        first.set()

    async with pool.acquire(SPEC) as box:
        code = "import sys, time; print('one', flush=True); print('two', file=sys.stderr); time.sleep(60)"
        running = asyncio.create_task(py(box, code, on_output=hear))
        await first.wait()
        assert not running.done()
        assert heard[0].data == b"one\n"
        running.cancel()
        await asyncio.wait([running])


async def test_everything_that_was_heard_is_in_the_result(pool: WorkerPool) -> None:
    heard: list[OutputEvent] = []

    async with pool.acquire(SPEC) as box:
        result = await py(
            box, "import sys; print('o' * 5000); print('e', file=sys.stderr)", on_output=heard.append
        )
        await asyncio.sleep(0)

    for stream, said in (("stdout", result.stdout), ("stderr", result.stderr)):
        assert b"".join(event.data for event in heard if event.stream == stream) == said.data


async def test_times_of_the_whole_tree_are_counted(pool: WorkerPool) -> None:
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"

    async with pool.acquire(SPEC) as box:
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {burn!r}])"
        result = await py(box, code)
        idle = await py(box, "pass")

    assert result.user_s + result.sys_s >= 0.29
    assert result.wall_s >= 0.29
    assert idle.user_s < 0.29  # each program's own


async def test_a_conversation_over_the_channel_ends_the_program(pool: WorkerPool) -> None:
    code = """
    import os
    with open(int(os.environ["FLYWHEEL_CHANNEL"]), "r+b", buffering=0) as channel:
        while line := channel.readline(): channel.write(line.upper())
    """
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for word in (b"one\n", b"two\n"):
            writer.write(word)
            heard.append(await reader.readline())

    async with pool.acquire(SPEC) as box:
        result = await py(box, code, talk=talk)
        after = await py(box, "import os; print('FLYWHEEL_CHANNEL' in os.environ)")

    assert result.status == "ok"
    assert heard == [b"ONE\n", b"TWO\n"]
    assert after.stdout.text == "False\n"


async def test_a_conversation_is_held_in_the_callers_loop_whoever_is_too_fast(pool: WorkerPool) -> None:
    code = """
    import os
    channel = open(int(os.environ["FLYWHEEL_CHANNEL"]), "r+b", buffering=0)
    for number in range(200): channel.write(b"%d " % number + b"x" * 9000 + b"\\n")
    print(len(channel.readline()))
    """
    here, ready, lines = asyncio.get_running_loop(), asyncio.Event(), []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert asyncio.get_running_loop() is here
        await ready.wait()
        for _ in range(200):
            lines.append((await reader.readline()).split()[0])
        writer.write(b"y" * 100_000 + b"\n")
        await reader.read()

    async with pool.acquire(SPEC) as box:
        running = asyncio.create_task(py(box, code, talk=talk))
        await asyncio.sleep(0.1)
        ready.set()
        result = await running

    assert lines == [b"%d" % number for number in range(200)]
    assert (result.status, result.stdout.text) == ("ok", "100001\n")


async def test_a_program_that_leaves_a_conversation_ends_as_it_ended(pool: WorkerPool) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await asyncio.sleep(10)

    async with pool.acquire(SPEC) as box:
        result = await py(box, "raise SystemExit(4)", talk=talk)

    assert (result.status, result.exit_code) == ("nonzero", 4)


async def test_an_error_of_the_hosts_side_of_a_conversation_rises(pool: WorkerPool) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise LookupError("ours")

    async with pool.acquire(SPEC) as box:
        with pytest.raises(LookupError, match="ours"):
            await py(box, "import time; time.sleep(60)", talk=talk)
        assert (await py(box, "print(1)")).stdout.text == "1\n"


async def test_cancelling_the_caller_ends_the_program_and_its_children(pool: WorkerPool) -> None:
    marker = uuid.uuid4().hex

    async with pool.acquire(SPEC) as box:
        argv = ["/bin/sh", "-c", f"sleep 60 & sleep 60 # {marker}"]
        running = asyncio.create_task(box.exec(argv, timeout_s=60))
        await becomes(lambda: processes_with(marker))
        running.cancel()
        await asyncio.wait([running])

    assert processes_with(marker) == []


async def test_programs_of_one_sandbox_share_a_workspace_and_no_processes(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await py(box, "import os; open('kept', 'w').write('x'); os.fork() or __import__('time').sleep(60)")
        result = await py(
            box, "import os; print(open('kept').read(), [p for p in os.listdir('/proc') if p.isdigit()])"
        )

    shown, _, processes = result.stdout.text.partition(" ")
    assert shown == "x"
    assert len(processes.split(",")) <= 2  # the first process may show, and the program itself


async def test_a_sandbox_that_was_closed_is_gone(pool: WorkerPool) -> None:
    box = await pool.create(SPEC)
    await box.close()
    await box.close()

    with pytest.raises(SandboxGone):
        await box.exec(["/bin/true"])


def test_an_unknown_image_is_refused(pool: WorkerPool) -> None:
    with pytest.raises(SandboxUnavailable, match="cuda"):
        asyncio.run(pool.run(SandboxSpec(image="cuda"), ["/bin/true"]))


# --- Python that is forked, not started, must not show it


async def test_python_runs_code_modules_and_scripts(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"script.py": b"import sys; print(__name__, __file__, sys.argv)"})
        script = await box.exec(["python", "script.py", "a"])
        module = await box.exec(["python", "-m", "json.tool"], stdin=b'{"a":1}')
        piped = await box.exec(["python", "-"], stdin=b"print(6 * 7)")

    assert script.stdout.text == "__main__ /workspace/script.py ['script.py', 'a']\n"
    assert module.stdout.text == '{\n    "a": 1\n}\n'
    assert piped.stdout.text == "42\n"


async def test_python_pickles_what_is_defined_in_main_and_runs_what_was_left_for_the_end(
    pool: WorkerPool,
) -> None:
    code = """
    import atexit, multiprocessing, pickle, sys, threading, time
    class Thing:
        def __eq__(self, other): return type(self) is type(other)
    atexit.register(print, "at exit")
    print(pickle.loads(pickle.dumps(Thing())) == Thing(), Thing.__module__)
    print(sys.modules["__main__"].Thing is Thing)
    threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
    open("unflushed", "w").write("written")
    """

    async with pool.acquire(SPEC) as box:
        result = await py(box, code)
        kept = await box.get("unflushed")

    assert result.stdout.text == "True __main__\nTrue\nthread\nat exit\n"
    assert kept == b"written"


async def test_python_finds_the_tests_of_a_file_and_says_when_they_fail(pool: WorkerPool) -> None:
    source = b"""
import unittest
class Sums(unittest.TestCase):
    def test_right(self): self.assertEqual(1 + 1, 2)
    def test_wrong(self): self.assertEqual(1 + 1, 3)
if __name__ == "__main__": unittest.main()
"""
    async with pool.acquire(SPEC) as box:
        await box.put({"test_sums.py": source})
        direct = await box.exec(["python", "test_sums.py"])
        found = await box.exec(["python", "-m", "unittest", "discover"])

    for result in (direct, found):
        assert (result.status, result.exit_code) == ("nonzero", 1)
        assert b"Ran 2 tests" in result.stderr.data
        assert b"FAILED (failures=1)" in result.stderr.data


async def test_python_shows_errors_as_it_always_does(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(
            {"broken.py": b"def f():\n    raise ValueError('why')\nf()\n", "syntax.py": b"x = = 1\n"}
        )
        broken = await box.exec(["python", "broken.py"])
        syntax = await box.exec(["python", "syntax.py"])
        said = await py(box, "raise SystemExit('in words')")

    assert broken.stderr.text.startswith("Traceback (most recent call last):\n  File ")
    assert 'broken.py", line 3, in <module>' in broken.stderr.text.splitlines()[1]
    assert broken.stderr.text.endswith("ValueError: why\n")
    assert "SyntaxError" in syntax.stderr.text
    assert (said.exit_code, said.stderr.text) == (1, "in words\n")


async def test_python_does_not_import_from_the_workspace_unless_asked(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"json.py": b"raise SystemExit('planted')", "helper.py": b"VALUE = 5"})
        plain = await py(box, "import json; print(json.loads('1'))")
        asked = await py(box, "import sys; sys.path.insert(0, '.'); import helper; print(helper.VALUE)")

    assert plain.stdout.text == "1\n"
    assert asked.stdout.text == "5\n"
