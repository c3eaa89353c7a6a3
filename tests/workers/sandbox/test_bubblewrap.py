"""The backend itself: results, who it runs as, and that it never runs a program with less."""

import asyncio
import gc
import json
import os
import stat
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.waiting import GUARD_S, becomes, until
from tests.workers.sandbox.programs import SMALL, Run, agents_of, programs_of
from workers.sandbox import SandboxSpec, SandboxUnavailable
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.cold import ColdBubblewrapBackend
from workers.sandbox.installation import reachable_python
from workers.sandbox.refusals import explain

ROOT = Path(__file__).resolve().parents[3]


def test_a_program_gets_its_stdin_and_files_and_starts_in_its_workspace(run: Run) -> None:
    result = run(
        "import sys; print(sys.stdin.read(), open('folder/given.txt').read())",
        stdin=b"x" * 200_000,
        files={"folder/given.txt": b"content"},
    )

    assert result.status == "ok"
    assert result.exit_code == 0
    assert result.stdout.total == 200_000 + len(" content\n")
    assert result.stdout.tail.endswith(b"content\n")


def test_exit_code_and_signal_are_told_apart(run: Run) -> None:
    left, killed = run("raise SystemExit(3)"), run("import os; os.kill(os.getpid(), 11)")

    assert (left.status, left.exit_code, left.signal) == ("nonzero", 3, None)
    assert (killed.status, killed.exit_code, killed.signal) == ("signal", None, 11)


def test_times_of_the_whole_tree_are_counted(run: Run) -> None:
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"

    result = run(f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {burn!r}])")

    assert result.user_s + result.sys_s >= 0.3
    assert result.wall_s >= 0.3


def test_runs_repeat_themselves(run: Run) -> None:
    first, second = (run("print(hash('seed'), {*'abcdefgh'})").stdout.data for _ in range(2))

    assert first == second


def test_cancelling_the_caller_ends_the_program(backend: BubblewrapBackend) -> None:
    async def cancel() -> None:
        program = ["python", "-c", "import time; time.sleep(600)"]
        running = asyncio.create_task(backend.run(SandboxSpec(limits=SMALL), program, timeout_s=600))
        await becomes(programs_of)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(cancel())

    assert programs_of() == agents_of() == set()


def test_many_runs_leak_no_descriptor(backend: BubblewrapBackend) -> None:
    async def several(count: int) -> None:
        spec = SandboxSpec(limits=SMALL)
        await asyncio.gather(*(backend.run(spec, ["/bin/true"]) for _ in range(count)))

    asyncio.run(several(8))
    gc.collect()  # what other tests left behind must not be counted
    before = len(os.listdir("/proc/self/fd"))

    asyncio.run(several(8))

    assert len(os.listdir("/proc/self/fd")) <= before


def test_without_a_cgroup_each_process_is_still_bounded_and_the_tier_says_so() -> None:
    backend = BubblewrapBackend(use_cgroup=False)
    hungry = [*backend.interpreter, "-c", "kept = []\nwhile True: kept.append(bytearray(1 << 20))"]

    result = asyncio.run(backend.run(SandboxSpec(limits=replace(SMALL, memory_bytes=64 << 20)), hungry))

    assert result.status == "oom" or b"MemoryError" in result.stderr.data
    assert backend.probe().cgroup == "none"
    assert any("RLIMIT_AS" in note for note in backend.probe().notes)


def test_a_missing_bwrap_is_refused_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sandbox.bubblewrap.bwrap_candidates", list)
    backend = BubblewrapBackend()

    with pytest.raises(SandboxUnavailable, match=r"No bwrap was found\. Install the package bubblewrap\."):
        asyncio.run(backend.run(SandboxSpec(), ["/bin/true"]))


def test_a_bwrap_that_leaves_a_protection_out_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from workers.sandbox.installation import bwrap_candidates, reachable_bwrap

    real = reachable_bwrap(bwrap_candidates()[-1])
    lenient = _script(
        tmp_path,
        f'for o; do shift; case $o in --remount-ro) s=1;; *) if [ "$s" ]; then s=; '
        f'else set -- "$@" "$o"; fi;; esac; done; exec {real} "$@"',
    )
    monkeypatch.setattr("workers.sandbox.bubblewrap.bwrap_candidates", lambda: [lenient])

    capabilities = BubblewrapBackend().probe()

    assert not capabilities.available
    assert "not in force: read-only / 1" in capabilities.reason


def test_a_sandbox_that_never_starts_is_an_error_of_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backend = BubblewrapBackend()
    backend.probe()
    backend.close()
    monkeypatch.setattr(backend, "_bwrap", _script(tmp_path, "echo no space for mounts >&2; exit 1"))

    result = asyncio.run(backend.run(SandboxSpec(), ["/bin/true"]))

    assert result.status == "infra_error"
    assert "no space for mounts" in result.detail


def test_a_program_that_does_not_exist_is_not_an_error_of_the_host(backend: BubblewrapBackend) -> None:
    result = asyncio.run(backend.run(SandboxSpec(), ["/no/such/program"]))

    assert (result.status, result.exit_code) == ("nonzero", 127)


def test_without_a_warm_interpreter_everything_works_the_same() -> None:
    """Its protections are probed as those of the other; what differs are the means."""
    backend = ColdBubblewrapBackend()
    patience_s = 6.0 if backend.probe().cgroup == "none" else 60.0

    async def session() -> tuple[object, ...]:
        sandbox = await backend.create(SandboxSpec(limits=SMALL))
        try:
            await sandbox.put({"folder/given.txt": b"content"})
            first = await sandbox.exec(["python", "-c", "print(open('folder/given.txt').read())"])
            greedy = await sandbox.exec(["python", "-c", _GREEDY], timeout_s=patience_s)
            await sandbox.reset()
            return first.stdout.text, greedy.status, await sandbox.list()
        finally:
            await sandbox.close()

    said, greedy, left = asyncio.run(session())

    assert (said, left) == ("content\n", ())
    assert greedy == "oom" or backend.probe().cgroup == "none"
    assert any("interpreter of its own" in note for note in backend.probe().notes)


_GREEDY = """
import os, time
for _ in range(9):
    if os.fork() == 0: kept = b"x" * (20 << 20); time.sleep(600)
os.wait()  # none ends by itself
"""


async def test_what_a_worker_that_is_gone_left_is_removed(backend: BubblewrapBackend) -> None:
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    hierarchy = find_hierarchy()
    if hierarchy is None:
        assert await backend.reap() == 0
        return
    left, kept = (hierarchy.parent / f"flywheel-{pid}-99" for pid in (gone.pid, os.getpid()))
    left.mkdir()
    kept.mkdir()
    try:
        assert await backend.reap() >= 1
        assert not left.exists()
        assert kept.exists()
    finally:
        kept.rmdir()


def test_an_unknown_image_is_refused(backend: BubblewrapBackend) -> None:
    with pytest.raises(SandboxUnavailable, match="cuda"):
        asyncio.run(backend.run(SandboxSpec(image="cuda"), ["/bin/true"]))


def test_the_refusal_of_user_namespaces_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"kernel/apparmor_restrict_unprivileged_userns": "1"}
    monkeypatch.setattr("workers.sandbox.refusals._setting", lambda name: settings.get(name, ""))

    reason, fix = explain("bwrap: setting up uid map: Permission denied")

    assert "AppArmor" in reason
    assert "sysctl kernel.apparmor_restrict_unprivileged_userns=0" in fix


def test_it_works_without_root(tmp_path: Path) -> None:
    script = tmp_path / "unprivileged.py"
    script.write_text(_UNPRIVILEGED)
    tmp_path.chmod(0o755)
    for folder in (script, *script.parents):
        if folder != Path("/") and not folder.stat().st_mode & stat.S_IXOTH and folder.is_dir():
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    script.chmod(0o644)
    command, environment, user = [sys.executable, str(script)], dict(os.environ), None
    if os.geteuid() == 0:  # the copy that every user can read
        python, user = reachable_python(), 65534
        command[0] = (
            python.executable.replace("/python", str(python.prefix), 1) if python.root else command[0]
        )
        environment = {"LD_LIBRARY_PATH": f"{python.prefix}/lib"}
    environment["PYTHONPATH"] = f"{ROOT}:{Path(pytest.__file__).parents[1]}"

    done = subprocess.run(
        command,
        env=environment,
        cwd="/",
        user=user,
        group=user,
        extra_groups=None if user is None else (),
        capture_output=True,
        timeout=GUARD_S,
    )

    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["host_uid"] != 0
    assert seen["statuses"] == ["ok", "timeout", "nonzero"]
    assert seen["forks"] < SMALL.processes


_UNPRIVILEGED = """
import asyncio, json, os
from workers.sandbox import Limits, SandboxSpec
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cgroup import find_hierarchy
from workers.sandbox.cold import ColdBubblewrapBackend
backend = BubblewrapBackend()
spec = SandboxSpec(limits=Limits(processes=24))
bomb = '''
import os, time
born = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        born += 1
except BlockingIOError: print(born)
'''
async def main():
    async def run(code, **more): return await backend.run(spec, [*backend.interpreter, "-c", code], **more)
    bombed = await run(bomb)
    slept = await run("import time; time.sleep(60)", timeout_s=0.3)
    results = [bombed, slept, await run("open('/etc/shadow')")]
    statuses, forks = [result.status for result in results], int(bombed.stdout.text)
    print(json.dumps({"host_uid": os.getuid(), "statuses": statuses, "forks": forks}))
asyncio.run(main())
"""


def test_cancelling_while_the_sandbox_is_being_built_leaves_nothing(backend: BubblewrapBackend) -> None:
    backend.probe()

    async def cancel_after(delay_s: float) -> None:
        program = ["/bin/sh", "-c", "sleep 60"]
        running = asyncio.create_task(backend.run(SandboxSpec(limits=SMALL), program, timeout_s=60))
        await asyncio.sleep(delay_s)
        running.cancel()
        await asyncio.wait([running])

    for step in range(40):
        asyncio.run(cancel_after(step * 0.0002))

    until(lambda: not programs_of() and not agents_of(), what="no program and no sandbox is left")


def _script(folder: Path, body: str) -> Path:
    """A shell script that any user can start."""
    path = folder / f"bwrap-{uuid.uuid4().hex}"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    for parent in path.parents:
        if parent != Path("/") and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    return path
