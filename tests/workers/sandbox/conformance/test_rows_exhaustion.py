"""Rows of the table of hostile programs that use something up: 1 to 15, 28 and 29."""

import asyncio
import resource
import uuid
from dataclasses import replace

import pytest

from tests.workers.sandbox.conformance.conftest import SPEC, py, run
from tests.workers.sandbox.programs import SMALL, processes_with
from workers.sandbox.protocol import MIB
from workers.sandbox.worker_pool import WorkerPool

pytestmark = pytest.mark.usefixtures("unharmed")


def test_row_01_an_endless_loop_uses_up_its_cpu(pool: WorkerPool) -> None:
    result = run(pool, "while True: pass")

    assert result.status == "cpu"
    assert result.user_s >= 0.8


def test_row_02_a_program_that_ignores_all_signals_times_out(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import signal, time
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        print("ignoring", flush=True)
        time.sleep(600)
        """,
        timeout_s=4.0,
    )

    assert (result.status, result.stdout.text) == ("timeout", "ignoring\n")


async def test_row_03_a_fork_bomb_with_sleeping_children_disturbs_nobody(pool: WorkerPool) -> None:
    bombed = asyncio.Event()
    bomb = """
    import os, time
    born = 0
    while True:
        try: pid = os.fork()
        except BlockingIOError: print("EAGAIN", born, flush=True); break
        if pid == 0: time.sleep(60); os._exit(0)
        born += 1
    time.sleep(0.5)
    """

    async with pool.acquire(SPEC) as box, pool.acquire(SPEC) as neighbour:
        bombing = asyncio.create_task(py(box, bomb, on_output=lambda _: bombed.set()))
        await bombed.wait()
        other = await py(neighbour, "import os; os.fork() or os._exit(0); os.wait(); print('fine')")
        result = await bombing

    word, born = result.stdout.text.split()
    assert word == "EAGAIN"
    assert 1 <= int(born) < SMALL.processes
    assert other.stdout.text == "fine\n"


def test_row_04_recursive_forks_end_and_leave_nothing(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import os, time
        while True:
            try: os.fork()
            except OSError: time.sleep(0.01)
        """,
        timeout_s=0.5,
    )

    assert result.status in ("timeout", "cpu")


def test_row_05_a_thread_bomb_gets_an_error_inside(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import threading, time, os
        try:
            while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            os.write(1, type(error).__name__.encode()); os._exit(0)
        """,
    )

    assert result.stdout.data in (b"RuntimeError", b"MemoryError")


def test_row_06_allocation_without_end_is_out_of_memory(pool: WorkerPool) -> None:
    result = run(pool, "kept = []\nwhile True: kept.append(bytearray(b'x' * (1 << 20)))")

    assert result.status == "oom" or b"MemoryError" in result.stderr.data


def test_row_07_children_together_cannot_exceed_the_memory_limit_or_the_tier_says_so(
    pool: WorkerPool,
) -> None:
    capabilities = pool.probe()

    result = run(
        pool,
        """
        import os, time
        for _ in range(10):
            if os.fork() == 0:
                kept = bytearray(b"x" * (20 << 20)); time.sleep(600)
        os.wait()  # none ends by itself
        """,
        timeout_s=10.0 if capabilities.cgroup == "none" else None,
    )

    if capabilities.cgroup == "none":
        assert any("memory" in note.lower() for note in capabilities.notes)
    else:
        assert result.status == "oom"


def test_row_08_unbounded_recursion_ends_by_a_limit(pool: WorkerPool) -> None:
    result = run(pool, "import sys\nsys.setrecursionlimit(10**9)\ndef down(): down()\ndown()")

    assert result.status in ("cpu", "oom", "signal") or b"MemoryError" in result.stderr.data


@pytest.mark.parametrize("stream", [1, 2], ids=["stdout", "stderr"])
def test_row_09_endless_output_is_cut_and_the_hosts_memory_stays_flat(pool: WorkerPool, stream: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = run(pool, f"import os\nwhile True: os.write({stream}, b'x' * 65536)")

    said = (result.stdout, result.stderr)[stream - 1]
    assert result.status == "output_limit"
    assert len(said.data) <= SMALL.keep_bytes + 60
    assert SMALL.output_bytes < said.total <= SMALL.output_bytes + MIB  # not read on and on
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # KiB


def test_row_10_bytes_stay_intact_and_a_split_character_is_shown_whole(pool: WorkerPool) -> None:
    result = run(
        pool,
        r"""
        import os, time
        os.write(1, b"\xff\xfe ok ")
        os.write(1, "€".encode()[:1]); time.sleep(0.05); os.write(1, "€".encode()[1:])
        """,
    )

    assert result.stdout.data == b"\xff\xfe ok " + "€".encode()
    assert result.stdout.text == "\ufffd\ufffd ok €"


def test_row_11_input_meets_the_end_of_file(pool: WorkerPool) -> None:
    result = run(pool, "input()", timeout_s=30.0)

    assert result.status == "nonzero"
    assert b"EOFError" in result.stderr.data


def test_row_12_a_grandchild_that_holds_stdout_open_delays_nothing(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import os, time
        if os.fork() == 0:
            os.setsid(); time.sleep(600)
        print("done")
        """,
    )

    assert (result.status, result.stdout.text) == ("ok", "done\n")


async def test_row_13_a_daemon_dies_with_its_program(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        result = await py(
            box,
            """
            import os, time
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(0.3); open("late", "w").write("still here")
                os._exit(0)
            os.wait()
            """,
        )
        await asyncio.sleep(0.5)

        assert result.status == "ok"
        assert await box.list() == ()


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm"])
def test_row_14_a_full_disk_is_an_error_inside(pool: WorkerPool, folder: str) -> None:
    result = run(
        pool,
        f"""
        import itertools
        for number in itertools.count():
            with open(f"{folder}/{{number}}", "wb", buffering=0) as stream: stream.write(b"x" * (1 << 20))
        """,
    )

    assert (result.status, result.exit_code) == ("nonzero", 1)
    assert b"No space left on device" in result.stderr.data


def test_row_14_one_huge_sparse_file_is_an_error_inside(pool: WorkerPool) -> None:
    result = run(pool, "open('/tmp/huge', 'wb').truncate(1 << 40)")

    assert b"File too large" in result.stderr.data


@pytest.mark.parametrize(
    "step",
    [
        "open(str(number), 'w').close()",
        "open(f'/tmp/{number}', 'w').close()",
        "os.mkdir('d'); os.chdir('d')",
    ],
    ids=["files", "temporary files", "folders"],
)
async def test_row_14_files_and_folders_without_end_meet_a_limit(pool: WorkerPool, step: str) -> None:
    async with pool.acquire(SPEC) as box:
        result = await py(box, f"import itertools, os\nfor number in itertools.count(): {step}")
        await box.reset()

        by_number = not any("empty files" in note for note in pool.probe().notes)
        assert b"No space left on device" in result.stderr.data or (
            not by_number and result.status in ("oom", "cpu")
        )
        assert await box.list() == ()


@pytest.mark.parametrize("place", ["/", "/usr", "/dev", "/etc", "/proc", "/var", "/run"])
def test_row_14_nothing_but_the_small_folders_is_writable(pool: WorkerPool, place: str) -> None:
    result = run(pool, f"open('{place}/planted', 'w')")

    assert result.status == "nonzero"


def test_row_15_open_files_are_limited(pool: WorkerPool) -> None:
    result = run(pool, "kept = []\nwhile True: kept.append(open('/dev/null'))")

    assert b"Too many open files" in result.stderr.data


def test_row_28_a_fifo_without_a_writer_times_out(pool: WorkerPool) -> None:
    result = run(pool, "import os; os.mkfifo('/tmp/fifo'); open('/tmp/fifo')", timeout_s=0.4)

    assert result.status == "timeout"


@pytest.mark.parametrize(
    "code",
    [
        "import zlib\nbomb, all = zlib.compress(bytes(1 << 20)), []\nwhile 1: all += [zlib.decompress(bomb)]",
        "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
        "10**10**9",
    ],
    ids=["zip bomb", "regular expression", "power"],
)
def test_row_29_small_inputs_with_huge_costs_meet_a_limit(pool: WorkerPool, code: str) -> None:
    result = run(pool, code)

    assert result.status in ("cpu", "oom") or b"MemoryError" in result.stderr.data


async def test_tighter_limits_of_one_program_are_in_force_and_those_of_the_next_are_not(
    pool: WorkerPool,
) -> None:
    shown = "import resource as r; print([r.getrlimit(k) for k in (r.RLIMIT_NPROC, r.RLIMIT_NOFILE)])"

    async with pool.acquire(SPEC) as box:
        tight = await py(box, shown, limits=replace(SMALL, processes=13, open_files=20))
        usual = await py(box, shown)
        small = await py(box, "print('x' * 5000)", limits=replace(SMALL, output_bytes=4096, keep_bytes=1000))
        short = await py(box, "import time; time.sleep(60)", limits=replace(SMALL, wall_s=0.3))

    assert tight.stdout.text == "[(13, 13), (20, 20)]\n"
    assert usual.stdout.text == f"{[(SMALL.processes,) * 2, (SMALL.open_files,) * 2]}\n"
    assert (small.status, len(small.stdout.head) + len(small.stdout.tail)) == ("output_limit", 1000)
    assert short.status == "timeout"


def test_the_processes_of_a_hostile_program_are_gone_from_the_host(pool: WorkerPool) -> None:
    marker = uuid.uuid4().hex
    code = f"setsid sleep 60 {marker} & setsid sh -c 'sleep 60; : {marker}' & sleep 60 # {marker}"

    result = asyncio.run(pool.run(SPEC, ["/bin/sh", "-c", code], timeout_s=0.4))

    assert result.status == "timeout"
    assert processes_with(marker) == []
