"""What only a real engine can show: how containers are made, how they end, what is left of them."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GUARD_S
from tests.workers.sandbox.programs import SMALL
from workers.sandbox.docker.backend import DockerBackend, DockerSandbox
from workers.sandbox.docker.container import FOLDERS, OWNER
from workers.sandbox.docker.image import LABEL, _system, container_image
from workers.sandbox.docker.rootfs import python_inside, system_layer
from workers.sandbox.docker.settings import docker_settings
from workers.sandbox.protocol import SandboxGone, SandboxSpec, SandboxUnavailable

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[3]
SPEC = SandboxSpec(limits=SMALL)
MINE = f"test-{os.getpid()}"
_workers: list["subprocess.Popen[bytes]"] = []


@pytest.fixture(scope="module")
def backend() -> Iterator[DockerBackend]:
    """Its containers carry a name of this test run, so that other users of the engine do not count."""
    backend = DockerBackend(replace(docker_settings(os.environ), owner=MINE))
    found = backend.probe()
    if not found.available:
        pytest.skip(f"needs a Docker engine: {found.reason}")
    yield backend
    for worker in _workers:  # where a test failed between
        worker.kill()
        worker.wait()
    assert containers(backend) == []


@pytest.fixture
def api(backend: DockerBackend) -> Any:
    return backend._engine.api


def containers(backend: DockerBackend, owner: str = MINE) -> list[str]:
    found = backend._engine.api.containers(all=True, filters={"label": f"{OWNER}={owner}"})
    return [container["Id"] for container in found]


async def create(backend: DockerBackend, spec: SandboxSpec = SPEC) -> DockerSandbox:
    sandbox = await backend.create(spec)
    assert isinstance(sandbox, DockerSandbox)
    return sandbox


async def test_a_container_is_hardened(backend: DockerBackend, api: Any) -> None:
    sandbox = await create(backend)
    try:
        made = api.inspect_container(sandbox._container.id)
    finally:
        await sandbox.close()

    config = made["HostConfig"]
    assert config["NetworkMode"] == config["IpcMode"] == config["LogConfig"]["Type"] == "none"
    assert config["ReadonlyRootfs"] is True
    assert config["CapDrop"] == ["ALL"]
    assert not config["CapAdd"]
    assert not config["Privileged"]
    assert not config["Binds"]
    assert not config["Devices"]
    assert config["Memory"] == config["MemorySwap"] > SMALL.memory_bytes
    assert SMALL.processes < config["PidsLimit"] < 2 * SMALL.processes
    assert (config["CpuQuota"], config["CpuPeriod"]) == (100_000, 100_000)
    assert "no-new-privileges:true" in config["SecurityOpt"]
    [profile] = [text for text in config["SecurityOpt"] if text.startswith("seccomp=")]
    assert "ptrace" in json.loads(profile.removeprefix("seccomp="))["syscalls"][0]["names"]
    assert set(config["Tmpfs"]) == set(FOLDERS)
    assert all(f"size={SMALL.workspace_bytes},nr_inodes=8192" in text for text in config["Tmpfs"].values())
    assert int(made["Config"]["User"].split(":")[0]) > 0
    assert made["Config"]["Labels"][OWNER] == MINE
    assert not made["Mounts"]


async def test_each_container_has_a_user_of_its_own(backend: DockerBackend) -> None:
    one, two = await asyncio.gather(create(backend), create(backend))
    try:
        users = [(await box.exec(["id", "-u"])).stdout.text for box in (one, two)]
    finally:
        await asyncio.gather(one.close(), two.close())

    assert users[0] != users[1]


async def test_closing_leaves_no_container(backend: DockerBackend) -> None:
    sandbox = await create(backend)
    assert containers(backend) == [sandbox._container.id]

    await sandbox.close()
    await sandbox.close()

    assert containers(backend) == []


async def test_a_container_ends_while_its_program_floods_and_nobody_reads(backend: DockerBackend) -> None:
    sandbox = await create(backend, SandboxSpec(limits=replace(SMALL, output_bytes=1 << 30)))
    heard = asyncio.Event()
    flood = asyncio.create_task(
        sandbox.exec(["yes", "x" * 4000], timeout_s=600, on_output=lambda event: heard.set())
    )
    await heard.wait()
    sandbox._container.writer.transport.pause_reading()  # type: ignore[attr-defined]

    async with asyncio.timeout(GUARD_S):
        await sandbox.close()

    flood.cancel()
    await asyncio.wait([flood])
    assert containers(backend) == []


async def test_leaving_while_a_container_is_made_leaves_none(backend: DockerBackend) -> None:
    for pause_s in (0.0, 0.01, 0.03, 0.06, 0.1):
        making = asyncio.create_task(backend.create(SPEC))
        await asyncio.sleep(pause_s)
        making.cancel()
        await asyncio.wait([making])
        if not making.cancelled():
            await making.result().close()

        assert containers(backend) == []


async def test_a_container_that_is_killed_from_outside_is_the_programs_own_end(
    backend: DockerBackend, api: Any
) -> None:
    sandbox = await create(backend)
    running = asyncio.Event()
    task = asyncio.create_task(
        sandbox.exec(["sh", "-c", "echo on; sleep 600"], timeout_s=600, on_output=lambda event: running.set())
    )
    await running.wait()
    await asyncio.to_thread(api.kill, sandbox._container.id)

    result = await task

    assert result.status == "signal"
    assert "hung up" in result.detail
    with pytest.raises(SandboxGone) as gone:
        await sandbox.list()
    assert gone.value.after_code
    assert containers(backend) == []


async def test_memory_that_ran_out_is_seen_where_the_hosts_cgroups_are_not(backend: DockerBackend) -> None:
    """As with an engine on another host: the container's own view tells."""
    sandbox = await create(backend)
    sandbox._container.group = None
    greedy = "data = []\nwhile True: data.append(b'x' * (1 << 20))"
    many = """
        import os, time
        for _ in range(6):
            if not os.fork():
                x = b"x" * (40 << 20)
                time.sleep(600)
        os.wait()  # none ends by itself
    """
    try:
        alone = await sandbox.exec(["python", "-c", greedy])
        before = await sandbox.exec(["sh", "-c", "exit 3"])
        together = await sandbox.exec(["python", "-c", textwrap.dedent(many)])
        after = await sandbox.exec(["sh", "-c", "exit 3"])
    finally:
        await sandbox.close()

    assert [alone.status, together.status] == ["oom", "oom"]
    assert [before.status, after.status] == ["nonzero", "nonzero"]


async def test_the_first_process_cannot_be_touched_by_programs(backend: DockerBackend) -> None:
    code = """
        import os, signal
        for number in range(1, 65):
            try: os.kill(1, number)
            except OSError: pass
        for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0", "/proc/1/root/etc"):
            try: os.open(path, os.O_RDONLY); print("opened", path)
            except OSError as error: print(error.strerror)
    """
    sandbox = await create(backend)
    try:
        result = await sandbox.exec(["python", "-c", textwrap.dedent(code)])
        await sandbox.ping()
    finally:
        await sandbox.close()

    assert result.stdout.text == "Permission denied\n" * 4


def test_what_a_killed_worker_left_is_reaped(backend: DockerBackend) -> None:
    worker = _worker(backend)
    assert len(containers(backend)) == 1

    worker.kill()
    worker.wait()

    assert asyncio.run(backend.reap()) == 1
    assert containers(backend) == []


def test_what_a_living_worker_has_is_not_reaped(backend: DockerBackend) -> None:
    worker = _worker(backend)
    try:
        assert asyncio.run(backend.reap()) == 0
        assert len(containers(backend)) == 1
    finally:
        worker.send_signal(signal.SIGINT)
        worker.wait()


def test_what_another_owner_has_is_not_reaped(backend: DockerBackend) -> None:
    worker = _worker(backend)
    worker.kill()
    worker.wait()

    assert asyncio.run(backend.reap("somebody-else")) == 0
    assert len(containers(backend)) == 1
    assert asyncio.run(backend.reap(MINE)) == 1


def test_a_container_ends_with_its_worker_before_anybody_reaps(backend: DockerBackend, api: Any) -> None:
    worker = _worker(backend)
    [id] = containers(backend)

    worker.kill()
    worker.wait()

    assert api.wait(id, timeout=GUARD_S)["StatusCode"] == 0
    assert asyncio.run(backend.reap()) == 1


def test_a_runtime_that_the_engine_lacks_is_refused(backend: DockerBackend) -> None:
    found = DockerBackend(replace(backend.settings, runtime="runs-nothing")).probe()

    assert not found.available
    assert "'runs-nothing'" in found.reason


def test_the_image_of_a_sandbox_is_named_by_its_content(backend: DockerBackend, api: Any) -> None:
    tag = container_image(backend._engine, "python")

    assert re.fullmatch(r"flywheel-sandbox:python-[0-9a-f]{12}", tag)
    assert api.inspect_image(tag)["Config"]["Labels"][LABEL] == tag
    assert system_layer().digest == _system().digest


def test_images_share_what_is_below(backend: DockerBackend, api: Any) -> None:
    layers = [
        api.inspect_image(container_image(backend._engine, name))["RootFS"]["Layers"]
        for name in ("python", "lint")
    ]

    assert layers[0][0] == layers[1][0]
    assert (len(layers[0]), len(layers[1])) == (2, 3)


async def test_a_base_image_can_be_named_by_its_digest(backend: DockerBackend, api: Any) -> None:
    base = api.inspect_image(container_image(backend._engine, "python"))["Id"]
    other = DockerBackend(replace(backend.settings, base=base, python=python_inside()))

    assert other.probe().available, other.probe()
    result = await other.run(SPEC, ["python", "-c", "print('on a base')"])

    assert result.stdout.text == "on a base\n"
    assert container_image(other._engine, "python") != container_image(backend._engine, "python")


def test_a_base_image_that_is_not_there_is_refused(backend: DockerBackend) -> None:
    found = DockerBackend(replace(backend.settings, base="sha256:" + "0" * 64)).probe()

    assert not found.available
    assert "docker pull sha256:000" in found.fix


async def test_packages_of_an_image_are_there_and_imported_before(backend: DockerBackend) -> None:
    spec = SandboxSpec(image="modelling", preimport=("numpy",), limits=replace(SMALL, memory_bytes=512 << 20))
    code = "import sys; print('numpy' in sys.modules); import numpy, manifold3d; print(numpy.arange(3).sum())"

    result = await backend.run(spec, ["python", "-c", code])

    assert (result.stdout.text, result.stderr.text) == ("True\n3\n", "")


async def test_a_command_of_an_image_is_on_the_path(backend: DockerBackend) -> None:
    files = {"bad.py": b"import os\n"}

    result = await backend.run(
        SandboxSpec(image="lint", limits=replace(SMALL, memory_bytes=256 << 20)),
        ["ruff", "check", "--isolated", "--no-cache", "bad.py"],
        files=files,
    )

    assert "F401" in result.stdout.text


async def test_an_unknown_image_is_refused(backend: DockerBackend) -> None:
    with pytest.raises(SandboxUnavailable, match="no environment image"):
        await backend.create(SandboxSpec(image="windows"))


async def test_no_descriptor_stays_open(backend: DockerBackend) -> None:
    await backend.run(SPEC, ["true"])
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        await backend.run(SPEC, ["true"])

    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_forked_worker_speaks_to_the_engine_by_itself(backend: DockerBackend) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = b"failed"
        try:
            status = asyncio.run(backend.run(SPEC, ["true"])).status.encode()
        finally:
            os.write(write, status)
            os._exit(0)
    os.waitpid(child, 0)

    assert os.read(read, 100) == b"ok"
    os.close(read)
    os.close(write)


def _worker(backend: DockerBackend) -> "subprocess.Popen[bytes]":
    """Another process with one live sandbox in it."""
    settings = backend.settings
    code = f"""
        import asyncio
        import signal
        from workers.sandbox.docker.settings import DockerSettings
        from workers.sandbox.docker.backend import DockerBackend
        from workers.sandbox.protocol import SandboxSpec
        async def main():
            backend = DockerBackend({settings!r})
            sandbox = await backend._create(SandboxSpec())
            try:
                hear = lambda event: print(event.data.decode(), flush=True)
                await sandbox.exec(["sh", "-c", "echo on; sleep 600"], timeout_s=600, on_output=hear)
            finally:
                await sandbox.close()
        # Tests that a shell runs in the background start with it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asyncio.run(main())
    """
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    _workers.append(worker)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"on\n"
    worker.stdout.close()
    return worker
