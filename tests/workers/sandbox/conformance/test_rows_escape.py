"""Rows of the table of hostile programs that reach for what is not theirs: 16 to 27, 30 to 32."""

import asyncio
import io
import os
import platform
import signal
import socket
import subprocess
import sys
import tarfile
import textwrap
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest

from artifacts import ArtifactStore
from tests.waiting import until
from tests.workers.sandbox.conformance.conftest import SPEC, py, run
from tests.workers.sandbox.programs import SMALL, processes_with
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.protocol import MIB, Backend, UnsafePath
from workers.sandbox.python_calls import collect_python_calls
from workers.sandbox.seccomp import _DENIED
from workers.sandbox.worker_pool import WorkerPool

pytestmark = pytest.mark.usefixtures("unharmed")

ROOT = Path(__file__).resolve().parents[4]
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def test_row_16_secrets_of_the_host_are_absent(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYWHEEL_SECRET", "hunter2")
    secret = Path("/tmp") / f"host-{uuid.uuid4().hex}"
    secret.write_text("hunter2")
    places = ["/etc/shadow", "/root", "/home", "/work", "/var/run/docker.sock", str(ROOT), str(secret)]

    result = run(
        pool,
        f"""
        import glob, os
        there = [place for place in {places!r} if os.path.exists(place)]
        print([place for place in there if not os.path.isdir(place) or os.listdir(place)])
        texts = [str(dict(os.environ))]
        for path in glob.glob("/proc/*/environ"):
            try: texts.append(open(path).read())
            except OSError: pass
        print("hunter2" in "".join(texts), len(glob.glob("/proc/[0-9]*")) < 6)
        """,
    )

    secret.unlink()
    assert result.stdout.text == "[]\nFalse True\n"


async def test_row_17_a_link_out_of_the_workspace_is_not_followed_by_anybody(
    pool: WorkerPool, store: ArtifactStore
) -> None:
    plant = """
    import os
    os.symlink('/etc/passwd', 'innocent'); os.symlink('/etc', 'folder'); os.symlink('/tmp', 'temporary')
    os.symlink('innocent', 'second'); os.symlink('/workspace', 'loop')
    open('innocent.txt', 'w').write('mine')
    """

    async with pool.acquire(SPEC) as box:
        assert (await py(box, plant)).status == "ok"
        for path in ("innocent", "second", "folder/passwd", "loop/innocent.txt"):
            with pytest.raises(UnsafePath):
                await box.get(path)
        for path in ("temporary/planted", "innocent", "folder/planted", "loop/planted"):
            with pytest.raises(UnsafePath):
                await box.put({path: b"x"})
        snapshot = await box.snapshot()
        listed = {info.path: info for info in await box.list()}
        planted = await py(box, "import os; print(os.path.exists('/tmp/planted'), os.path.exists('planted'))")
    async with pool.acquire(SPEC, base=snapshot) as fork:
        restored = {info.path: info.kind for info in await fork.list()}

    assert listed["folder"].kind == "link"
    assert not any(path.startswith(("folder/", "loop/")) for path in listed)
    assert restored == {path: info.kind for path, info in listed.items()}
    assert planted.stdout.text == "False False\n"


def test_row_18_no_connection_leaves(pool: WorkerPool) -> None:
    name = f"\0flywheel-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as host, socket.socket() as local:
        host.bind(name)
        host.listen()
        local.bind(("127.0.0.1", 0))
        local.listen()
        result = run(
            pool,
            f"""
            import socket
            def attempt(what):
                try: what(); print("connected")
                except OSError as error: print("refused")
            attempt(lambda: socket.create_connection(("1.1.1.1", 80), 1))
            attempt(lambda: socket.create_connection(("127.0.0.1", {local.getsockname()[1]}), 1))
            attempt(lambda: socket.create_connection(("example.com", 80), 1))
            attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
            attempt(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
            attempt(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))
            """,
        )

    assert result.stdout.text == "refused\n" * 7


async def test_row_19_the_first_process_cannot_be_touched(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        result = await py(
            box,
            LIBC
            + textwrap.dedent(
                """
                import signal
                for pid in (1, -1):
                    try: os.kill(pid, signal.SIGKILL)
                    except OSError: pass
                print("alive", libc.ptrace(16, 1, 0, 0), ctypes.get_errno(), flush=True)
                for name in ("mem", "environ", "maps", "fd/0", "root", "cwd", "exe"):
                    try: os.open("/proc/1/" + name, os.O_RDONLY); print("open", name)
                    except OSError: pass
                try: open("/proc/1/mem", "r+b"); print("open")
                except OSError: print("refused")
                """
            ),
        )
        after = await py(box, "print('served')")

    assert result.stdout.text == "alive -1 1\nrefused\n"
    assert after.stdout.text == "served\n"


def test_row_20_namespaces_mounts_roots_and_devices_are_refused(pool: WorkerPool) -> None:
    result = run(
        pool,
        LIBC
        + textwrap.dedent(
            """
            CLONE_NEWUSER = 0x10000000
            mounted = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
            print(libc.unshare(CLONE_NEWUSER), mounted, libc.chroot(b"/tmp"), libc.umount2(b"/workspace", 2))
            print(libc.setns(os.open("/proc/self/ns/net", 0), 0))
            try: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)); print("made")
            except PermissionError: print("refused")
            """
        ),
    )

    assert result.stdout.text == "-1 -1 -1 -1\n-1\nrefused\n"


def test_row_20_a_program_has_no_capability_and_can_gain_none(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
        lines = [line.split() for line in open("/proc/self/status")]
        print([int(line[1], 16) for line in lines if line and line[0].rstrip(":") in wanted])
        """,
    )

    assert result.stdout.text == "[0, 0, 0, 0, 0, 1, 2]\n"


def test_row_21_a_set_uid_copy_gains_nothing(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import os, shutil, subprocess
        shutil.copy("/bin/sh", "/tmp/sh"); os.chmod("/tmp/sh", 0o6755)
        try:
            seen = subprocess.run(["/tmp/sh", "-pc", "grep -E '^(Uid|CapEff|NoNewPrivs)' /proc/self/status"],
                                  capture_output=True, text=True).stdout.split()
        except PermissionError: seen = ["not started"]  # the folder holds no programs
        print(os.getuid(), seen)
        """,
    )

    uid, _, seen = result.stdout.text.strip().partition(" ")
    assert uid != "0"
    nothing_gained = ["Uid:", *[uid] * 4, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    assert seen in (str(nothing_gained), "['not started']")


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"])
def test_row_22_settings_of_the_kernel_are_refused(pool: WorkerPool, path: str) -> None:
    result = run(pool, f"open({path!r}, 'w').write('x')")

    assert result.status == "nonzero"
    assert b"Error" in result.stderr.data


def test_row_23_limits_cannot_be_raised(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import resource
        for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU,
                     resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
            hard = resource.getrlimit(kind)[1]
            try: resource.setrlimit(kind, (hard + 1, hard + 1)); print("raised")
            except (ValueError, PermissionError): print("refused")
        """,
    )

    assert result.stdout.text == "refused\n" * 6


def test_row_24_no_descriptor_of_the_host_or_the_agent_is_open_inside(pool: WorkerPool) -> None:
    result = run(
        pool,
        """
        import os
        written = 0
        for number in range(3, 1024):
            try: os.write(number, b'{"status": "passed"}'); written += 1
            except OSError: pass
        print(written, len(os.listdir("/proc/self/fd")))
        """,
        stdin=b"given",
        files={"given.txt": b"given"},
    )

    assert result.stdout.text == "0 4\n"  # the fourth is that of the listing


def test_row_25_printing_success_and_leaving_is_not_success(pool: WorkerPool) -> None:
    code = "import os, sys\nprint('PASSED', flush=True)\nos._exit(0)"

    report = calls(pool, code)

    assert report["status"] == "nonzero"
    assert [call["status"] for call in report["calls"]] == ["missing"]


def test_row_26_replaced_builtins_stay_in_their_own_sandbox(pool: WorkerPool) -> None:
    vandal = textwrap.dedent(
        """
        import builtins, json, os, sys
        os._exit = json.loads = json.dumps = builtins.print = builtins.len = lambda *a, **k: None
        sys.stdout = sys.exit = None
        def double(x): return 2 * x
        """
    )

    calls(pool, vandal)
    after = calls(pool, "def double(x): return len([x]) + x")

    assert after["calls"] == [{"status": "ok", "value": 5, "error": ""}]


async def test_row_26_replaced_builtins_do_not_reach_the_next_program_of_the_same_sandbox(
    pool: WorkerPool,
) -> None:
    async with pool.acquire(SPEC) as box:
        await py(box, "import builtins, os, json; os._exit = builtins.print = json.loads = None")
        after = await py(box, "import json; print(json.loads('[1]'))")

    assert (after.status, after.stdout.text) == ("ok", "[1]\n")


@pytest.mark.parametrize(
    "name", ["io_uring_setup", "bpf", "perf_event_open", "userfaultfd", "keyctl", "memfd_create", "shmget"]
)
def test_row_27_dangerous_system_calls_are_refused(pool: WorkerPool, name: str) -> None:
    code = LIBC + f"print(libc.syscall({_DENIED[name][COLUMN]}, 0, 0, 0, 0, 0), ctypes.get_errno())"

    assert run(pool, code).stdout.text == "-1 1\n"


def test_row_27_calls_newer_than_the_table_and_clone3_do_not_exist(pool: WorkerPool) -> None:
    result = run(pool, LIBC + "print([(libc.syscall(n, 0, 0), ctypes.get_errno()) for n in (435, 463, 999)])")

    assert result.stdout.text == "[(-1, 38), (-1, 38), (-1, 38)]\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only this architecture has a second table")
def test_row_27_a_call_of_another_table_is_not_made(pool: WorkerPool) -> None:
    result = run(pool, LIBC + "libc.syscall(0x40000000 | 39); print('survived')")

    assert (result.status, result.signal) == ("signal", signal.SIGSYS)
    assert "survived" not in result.stdout.text


async def test_row_30_nothing_is_left_for_the_next_task(pool: WorkerPool) -> None:
    litter = """
    import mmap, os, sys, time
    for folder in ("/tmp", "/workspace", "/dev/shm"):
        with open(folder + "/planted", "w") as stream: stream.write("x")
    if os.fork() == 0:
        os.setsid(); time.sleep(60)
    """
    look = """
    import os
    print([os.listdir(folder) for folder in ("/tmp", "/workspace", "/dev/shm")])
    print(len([name for name in os.listdir("/proc") if name.isdigit()]) <= 2)
    """

    async with pool.acquire(SPEC) as box:
        await py(box, litter)
        same = await py(box, look)  # the next program of the same task keeps its files only
    async with pool.acquire(SPEC) as following:
        after = await py(following, look)

    assert same.stdout.text.splitlines()[1] == "True"
    assert after.stdout.text == "[[], [], []]\nTrue\n"


def tar(*entries: tuple[str, bytes, str, bytes]) -> bytes:
    """(name, type, link target, content) each."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as pack:
        for name, kind, target, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(content)
            pack.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(name: str, content: bytes = b"x", mode: int = 0o100644) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        info = zipfile.ZipInfo(name)
        info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
        pack.writestr(info, content)
    return buffer.getvalue()


FILE, LINK, HARD, DEVICE, PIPE = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
)
GOOD = ("innocent", FILE, "", b"x")
ARCHIVES = {
    "parent": tar(GOOD, ("../planted", FILE, "", b"x")),
    "parent within": tar(GOOD, ("a/../../planted", FILE, "", b"x")),
    "absolute": tar(GOOD, ("/tmp/planted", FILE, "", b"x")),
    "link out": tar(GOOD, ("link", LINK, "/tmp", b"")),
    "link up": tar(GOOD, ("a/link", LINK, "../../tmp", b"")),
    "through a link": tar(GOOD, ("link", LINK, "/tmp", b""), ("link/planted", FILE, "", b"x")),
    "two-step link": tar(("a", LINK, ".", b""), ("b", LINK, "a/..", b""), ("b/tmp/planted", FILE, "", b"x")),
    "hard link out": tar(GOOD, ("hard", HARD, "/etc/passwd", b"")),
    "hard link up": tar(GOOD, ("hard", HARD, "../etc/passwd", b"")),
    "device": tar(GOOD, ("null", DEVICE, "", b"")),
    "pipe": tar(GOOD, ("pipe", PIPE, "", b"")),
    "zip parent": zipped("../planted"),
    "zip absolute": zipped("/tmp/planted"),
    "zip link out": zipped("link", b"/tmp", 0o120777),
}


@pytest.mark.parametrize("name", ARCHIVES)
async def test_row_31_an_archive_that_reaches_outside_is_refused_whole(pool: WorkerPool, name: str) -> None:
    async with pool.acquire(SPEC) as box:
        with pytest.raises(UnsafePath):
            await box.put_archive(ARCHIVES[name])

        assert await box.list() == ()
        looked = await py(box, "import os; print(os.path.exists('/tmp/planted'))")
        assert looked.stdout.text == "False\n"


@pytest.mark.parametrize("kind", ["zip", "gz", "xz"])
async def test_row_31_an_archive_larger_than_the_workspace_is_refused(pool: WorkerPool, kind: str) -> None:
    content = bytes(SMALL.workspace_bytes + MIB)
    if kind == "zip":
        bomb = zipped("big", content)
    else:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=f"w:{kind}") as pack:  # type: ignore[call-overload]
            info = tarfile.TarInfo("big")
            info.size = len(content)
            pack.addfile(info, io.BytesIO(content))
        bomb = buffer.getvalue()
    assert len(bomb) < MIB

    async with pool.acquire(SPEC) as box:
        with pytest.raises(ValueError, match=r"more than the workspace|No space left"):
            await box.put_archive(bomb)

        assert (await py(box, "print('served')")).stdout.text == "served\n"


async def test_row_31_an_archive_over_a_planted_link_is_refused(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await py(box, "import os; os.symlink('/tmp', 'folder')")
        with pytest.raises(UnsafePath):
            await box.put_archive(tar(("folder/planted", FILE, "", b"x")))

        assert (await py(box, "import os; print(os.listdir('/tmp'))")).stdout.text == "[]\n"


def test_row_32_a_killed_worker_leaves_nothing(backend: Backend) -> None:
    marker = uuid.uuid4().hex
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_WORKER.format(marker=marker))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FLYWHEEL_SANDBOX": backend.name},
    )
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"running\n"
        until(lambda: len(processes_with(marker)) >= 3, what="the worker, the program and its daemon live")
    finally:
        worker.kill()
        worker.wait()
    asyncio.run(backend.reap())

    until(lambda: not processes_with(marker), what="nothing of the worker lives")
    hierarchy = find_hierarchy()
    if hierarchy is not None:
        assert list(hierarchy.parent.glob(f"flywheel-{worker.pid}-*")) == []
    worker.stdout.close()


_WORKER = """
    import asyncio
    from workers.sandbox.protocol import SandboxSpec
    from workers.sandbox.worker_pool import worker_pool
    code = "setsid sh -c 'sleep 600; : {marker}' & echo running; sleep 600 # {marker}"
    async def main():
        async with worker_pool().acquire(SandboxSpec()) as box:
            hear = lambda event: print(event.data.decode(), end="", flush=True)
            await box.exec(["/bin/sh", "-c", code], timeout_s=600, on_output=hear)
    asyncio.run(main())
"""


def calls(pool: WorkerPool, code: str) -> dict[str, Any]:
    return asyncio.run(
        collect_python_calls(pool, code=code, entry_point="double", calls=[{"args": [4]}], limits=SMALL)
    )
