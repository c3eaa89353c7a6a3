"""The warm interpreter: what sandboxes forked from it share, which is nothing, and what ends them."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.waiting import GUARD_S, becomes, until
from tests.workers.sandbox.programs import SMALL, agents_of, alive, programs_of
from workers.sandbox import SandboxSpec
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.protocol import SandboxGone
from workers.sandbox.session import AgentSandbox

SPEC = SandboxSpec(limits=SMALL)
AGENT = """
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, call):
    ctypes.set_errno(0)
    try: result = call()
    except OSError as error: print(name, type(error).__name__); return
    print(name, "done" if result != -1 else os.strerror(ctypes.get_errno()))
"""


@pytest.fixture
def own() -> BubblewrapBackend:
    backend = BubblewrapBackend()
    yield backend
    backend.close()


def within(backend: BubblewrapBackend, action: Callable[[AgentSandbox], Awaitable[object]]) -> object:
    async def call() -> object:
        sandbox = await backend.create(SPEC)
        try:
            return await action(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(call())


def test_a_program_cannot_reach_the_agent_that_started_it(backend: BubblewrapBackend) -> None:
    code = (
        AGENT
        + """
attempt("limits", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
attempt("memory", lambda: open("/proc/1/mem", "r+b"))
attempt("descriptors", lambda: os.listdir("/proc/1/fd"))
attempt("handle", lambda: libc.syscall(438, os.pidfd_open(1), 3, 0))
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
print("seen", os.path.exists("/proc/1"))
"""
    )

    async def attack(sandbox: AgentSandbox) -> tuple[str, str]:
        first = await sandbox.exec(["python", "-c", code])
        return first.stdout.text, (await sandbox.exec(["python", "-c", "print('serves')"])).stdout.text

    said, after = within(backend, attack)

    assert said.splitlines() == [
        "limits PermissionError",
        "memory FileNotFoundError",
        "descriptors FileNotFoundError",
        "handle Operation not permitted",
        "seen False",
    ]
    assert after == "serves\n"


def test_a_program_has_nothing_of_what_the_agent_may(backend: BubblewrapBackend) -> None:
    code = (
        AGENT
        + "attempt('unmount', lambda: libc.umount2(b'/workspace', 2))\n"
        + (
            "attempt('mount', lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))\n"
            "lines = [line.split() for line in open('/proc/self/status')]\n"
            "print([line[1] for line in lines if line[0].startswith(('Cap', 'NoNew'))])"
        )
    )

    async def look(sandbox: AgentSandbox) -> str:
        return (await sandbox.exec(["python", "-c", code])).stdout.text

    said = str(within(backend, look)).splitlines()

    assert said[:2] == ["unmount Operation not permitted", "mount Operation not permitted"]
    assert said[2] == str(["0" * 16] * 5 + ["1"])


def test_terminals_abstract_sockets_and_shared_memory_are_each_sandboxs_own(
    backend: BubblewrapBackend,
) -> None:
    """What two sandboxes of one zygote could have in common besides files."""
    hold = """
import os, pty, socket, time
pty.openpty()
kept = socket.socket(socket.AF_UNIX); kept.bind("\\0shared"); kept.listen()
open("/dev/shm/shared", "w").write("x")
print("ready", flush=True); time.sleep(600)
"""
    look = """
import os, socket
print(sorted(os.listdir("/dev/pts")), os.listdir("/dev/shm"), os.uname().nodename)
try: socket.socket(socket.AF_UNIX).connect("\\0shared"); print("connected")
except ConnectionRefusedError: print("refused")
"""

    async def two() -> str:
        first, second = await backend.create(SPEC), await backend.create(SPEC)
        ready = asyncio.Event()
        holding = asyncio.create_task(
            first.exec(["python", "-c", hold], timeout_s=600, on_output=lambda event: ready.set())
        )
        try:
            await asyncio.wait_for(ready.wait(), GUARD_S)
            return (await second.exec(["python", "-c", look])).stdout.text
        finally:
            holding.cancel()
            await asyncio.wait([holding])
            await asyncio.gather(first.close(), second.close())

    assert asyncio.run(two()) == "['ptmx'] [] sandbox\nrefused\n"


def test_a_killed_zygote_takes_its_sandboxes_along_and_another_is_started(own: BubblewrapBackend) -> None:
    async def killed() -> tuple[set[int], bool, str]:
        sandbox = await own.create(SPEC)
        await sandbox.exec(["/bin/true"])
        agents = agents_of()
        _end_zygotes()
        await becomes(lambda: not alive(agents))
        with pytest.raises(SandboxGone) as gone:
            await sandbox.list()
        await sandbox.close()
        after = await own.run(SPEC, ["python", "-c", "print('again')"])
        return agents, gone.value.after_code, after.stdout.text

    agents, after_code, said = asyncio.run(killed())

    assert agents
    assert after_code
    assert said == "again\n"


def _end_zygotes() -> None:
    """The first process below each bwrap that this process started."""
    for bwrap in _children(os.getpid()):
        if b"bwrap" in Path(f"/proc/{bwrap}/cmdline").read_bytes():
            for zygote in _children(bwrap):
                os.kill(zygote, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Of all its threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return found


def test_a_sandbox_that_dies_before_a_program_ran_is_nobodys_failure(own: BubblewrapBackend) -> None:
    async def killed() -> bool:
        sandbox = await own.create(SPEC)
        agents = agents_of()
        _end_zygotes()
        await becomes(lambda: not alive(agents))
        with pytest.raises(SandboxGone) as gone:
            await sandbox.exec(["/bin/true"])
        await sandbox.close()
        return gone.value.after_code

    assert asyncio.run(killed()) is False


def test_sandboxes_outlast_the_thread_that_started_the_zygote(own: BubblewrapBackend) -> None:
    started: list[AgentSandbox] = []
    thread = threading.Thread(target=lambda: own.probe())
    thread.start()
    thread.join()

    async def after() -> str:
        started.append(await own.create(SPEC))
        result = await started[0].exec(["python", "-c", "print('alive')"])
        await started[0].close()
        return result.stdout.text

    assert asyncio.run(after()) == "alive\n"


def test_a_forked_worker_starts_its_own_zygote_and_leaves_the_others_alone(own: BubblewrapBackend) -> None:
    asyncio.run(own.run(SPEC, ["/bin/true"]))
    receive, send = multiprocessing.Pipe(duplex=False)

    def worker() -> None:
        result = asyncio.run(own.run(SPEC, ["python", "-c", "print('child')"]))
        send.send((result.stdout.text, len(_children(os.getpid()))))
        own.close()
        os._exit(0)

    child = multiprocessing.get_context("fork").Process(target=worker)
    child.start()
    said, zygotes = receive.recv() if receive.poll(GUARD_S) else ("nothing", 0)
    child.join(GUARD_S)

    assert (said, zygotes) == ("child\n", 1)
    assert asyncio.run(own.run(SPEC, ["python", "-c", "print('parent')"])).stdout.text == "parent\n"


def test_memory_groups_are_reused_and_end_with_the_backend() -> None:
    backend = BubblewrapBackend()
    hierarchy = find_hierarchy()
    if hierarchy is None:
        assert backend.probe().cgroup == "none"
        return
    before = set(hierarchy.parent.glob(f"flywheel-{os.getpid()}-*"))

    async def several() -> None:
        await asyncio.gather(*(backend.run(SPEC, ["/bin/true"]) for _ in range(3)))

    asyncio.run(several())
    first = set(hierarchy.parent.glob(f"flywheel-{os.getpid()}-*")) - before
    asyncio.run(several())
    again = set(hierarchy.parent.glob(f"flywheel-{os.getpid()}-*")) - before
    backend.close()

    assert first == again
    assert len(first) >= 3
    assert not any(path.exists() for path in first)


def test_a_group_that_served_a_hungry_program_serves_the_next(own: BubblewrapBackend) -> None:
    hungry = ["python", "-c", "kept = []\nwhile True: kept.append(bytearray(1 << 20))"]

    results = [asyncio.run(own.run(SPEC, argv)) for argv in (hungry, ["/bin/true"], hungry)]

    assert [result.status for result in results[1:2]] == ["ok"]
    for result in (results[0], results[2]):
        assert result.status == "oom" or b"MemoryError" in result.stderr.data
    assert (results[1].maxrss_bytes or 0) < SMALL.memory_bytes // 2


def test_programs_are_in_the_memory_group_of_their_sandbox_however_many_there_are(
    own: BubblewrapBackend,
) -> None:
    """A process that was forked before its agent was moved would be outside."""
    if own.probe().cgroup == "none":
        assert any("memory" in note for note in own.probe().notes)
        return

    async def groups() -> list[set[str]]:
        sandboxes = [await own.create(SPEC) for _ in range(20)]
        argv = ["/bin/sh", "-c", "sleep 600 & sleep 600"]
        running = [asyncio.create_task(sandbox.exec(argv, timeout_s=600)) for sandbox in sandboxes]
        await becomes(lambda: len(programs_of()) >= 60, what="three processes in each of twenty")
        found = [_memory_groups(pids) for pids in (programs_of(), agents_of())]
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
        return found

    programs, agents = asyncio.run(groups())

    assert programs == agents
    assert len(programs) == 20


def _memory_groups(pids: set[int]) -> set[str]:
    found = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            if ":memory:" in line or line.startswith("0::/"):
                found.add(line)
    return {line for line in found if "flywheel-" in line} or found


def test_more_at_once_than_there_are_groups_in_reserve(own: BubblewrapBackend) -> None:
    async def many() -> list[str]:
        program = ["python", "-c", "import time; time.sleep(0.2); print('ok')"]
        results = await asyncio.gather(*(own.run(SPEC, program) for _ in range(20)))
        return [result.stdout.text for result in results]

    assert asyncio.run(many()) == ["ok\n"] * 20
    until(lambda: not programs_of() and not agents_of(), what="no program and no sandbox is left")


def test_a_sandbox_is_gone_when_the_event_loop_has_ended_that_ran_its_program(own: BubblewrapBackend) -> None:
    """``run`` does not wait for the last of it, but the end of the loop does."""
    before = agents_of()

    results = [asyncio.run(own.run(SPEC, ["/bin/true"])).status for _ in range(3)]

    assert results == ["ok"] * 3
    assert alive(agents_of() - before) == set()


def test_the_warm_interpreter_holds_no_module_that_only_makes_forks_dearer(own: BubblewrapBackend) -> None:
    dear = ("socket", "selectors", "signal", "platform", "fcntl", "array", "subprocess", "typing")
    code = f"import sys; print([name for name in {dear} if name in sys.modules])"

    assert asyncio.run(own.run(SPEC, ["python", "-c", code])).stdout.text == "[]\n"
