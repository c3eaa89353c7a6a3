"""What the Docker sandbox decides without an engine: settings, filter, refusals, whose container it is."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from workers.sandbox import seccomp
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.choice import chosen_backend
from workers.sandbox.docker.backend import DockerBackend
from workers.sandbox.docker.container import fresh_uid, is_left_behind, labels, own_process
from workers.sandbox.docker.libraries import libraries
from workers.sandbox.docker.probe import lacking
from workers.sandbox.docker.rootfs import agent_layer, image_layer
from workers.sandbox.docker.seccomp import docker_profile
from workers.sandbox.docker.settings import DockerSettings, docker_settings
from workers.sandbox.images import image_named
from workers.sandbox.installation import Python
from workers.sandbox.protocol import SandboxSpec, SandboxUnavailable

DIGEST = "sha256:" + "a" * 64
GOOD = {
    "OSType": "linux",
    "Architecture": os.uname().machine,
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=seccomp,profile=default"],
    "Runtimes": {"runc": {}, "runsc": {}},
}


def test_bubblewrap_is_chosen_unless_the_operator_says_otherwise() -> None:
    assert isinstance(chosen_backend({}), BubblewrapBackend)
    assert isinstance(chosen_backend({"FLYWHEEL_SANDBOX": "docker"}), DockerBackend)


def test_settings_come_from_the_environment() -> None:
    backend = chosen_backend(
        {
            "FLYWHEEL_SANDBOX": "docker",
            "FLYWHEEL_DOCKER_HOST": "tcp://10.0.0.7:2375",
            "FLYWHEEL_DOCKER_RUNTIME": "runsc",
            "FLYWHEEL_DOCKER_BASE": f"python@{DIGEST}",
            "FLYWHEEL_DOCKER_CPUS": "0.5",
            "FLYWHEEL_DOCKER_TTL_S": "60",
            "FLYWHEEL_DOCKER_OWNER": "billing",
        }
    )

    assert isinstance(backend, DockerBackend)
    assert backend.settings == DockerSettings(
        host="tcp://10.0.0.7:2375",
        runtime="runsc",
        base=f"python@{DIGEST}",
        cpus=0.5,
        ttl_s=60,
        owner="billing",
    )


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"FLYWHEEL_SANDBOX": "chroot"}, "'chroot', which is no sandbox"),
        ({"FLYWHEEL_SANDBOX": "docker", "FLYWHEEL_DOCKER_BASE": "python:3.11"}, "another image tomorrow"),
        ({"FLYWHEEL_SANDBOX": "docker", "FLYWHEEL_DOCKER_CPUS": "two"}, "no number"),
    ],
)
def test_settings_that_mean_nothing_are_refused(environment: Mapping[str, str], reason: str) -> None:
    with pytest.raises(SandboxUnavailable, match=reason) as refused:
        chosen_backend(environment)

    assert refused.value.fix


def test_the_engine_of_the_docker_command_is_the_default() -> None:
    assert docker_settings({"DOCKER_HOST": "unix:///run/user/1/docker.sock"}).host.endswith("1/docker.sock")


def test_where_no_engine_is_the_sandbox_is_unavailable_with_reason_and_fix() -> None:
    found = DockerBackend(DockerSettings(host="unix:///nonexistent/docker.sock")).probe()

    assert not found.available
    assert found.reason == "There is no Docker engine at unix:///nonexistent/docker.sock."
    assert "FLYWHEEL_DOCKER_HOST" in found.fix


async def test_where_no_engine_is_nothing_is_created() -> None:
    with pytest.raises(SandboxUnavailable, match="no Docker engine"):
        await DockerBackend(DockerSettings(host="unix:///nonexistent/docker.sock")).create(SandboxSpec())


def test_an_engine_with_everything_lacks_nothing() -> None:
    assert lacking(GOOD, DockerSettings(runtime="runsc")) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"OSType": "windows"}, "windows containers"),
        ({"Architecture": "riscv64"}, "riscv64"),
        ({"MemoryLimit": False}, "bound memory"),
        ({"SwapLimit": False}, "bound swap"),
        ({"PidsLimit": False}, "bound processes"),
        ({"CpuCfsQuota": False}, "bound CPU"),
        ({"SecurityOptions": ["name=apparmor"]}, "no seccomp"),
        ({"Runtimes": {"runc": {}}}, "no runtime 'runsc'"),
    ],
)
def test_an_engine_that_cannot_protect_is_refused(change: Mapping[str, object], reason: str) -> None:
    found = lacking({**GOOD, **change}, DockerSettings(runtime="runsc"))

    assert found is not None
    assert reason in found[0]
    assert found[1]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_docker_denies_what_the_embedded_filter_denies(machine: str) -> None:
    profile = json.loads(docker_profile(machine))

    answers = {
        name: rule["errnoRet"] for rule in profile["syscalls"] if not rule["args"] for name in rule["names"]
    }
    assert set(answers) == {*seccomp._DENIED, "clone3"}
    assert answers.pop("clone3") == errno.ENOSYS
    assert set(answers.values()) == {errno.EPERM}
    flags = [rule["args"][0]["value"] for rule in profile["syscalls"] if rule["names"] == ["clone"]]
    assert sum(flags) == seccomp._NAMESPACE_FLAGS
    assert len(profile["architectures"]) == 1


def test_docker_has_no_filter_for_an_unknown_machine() -> None:
    with pytest.raises(seccomp.UnknownArchitecture):
        docker_profile("riscv64")


def test_users_of_containers_are_nobody_of_the_host_and_differ() -> None:
    users = {fresh_uid() for _ in range(100)}

    assert len(users) > 90
    assert min(users) > 1 << 20


def test_a_container_of_this_process_is_not_left_behind() -> None:
    assert not is_left_behind({"Labels": labels("me", 60), "State": "running"}, time.time())


def test_not_even_after_its_time() -> None:
    assert not is_left_behind({"Labels": labels("me", -60), "State": "running"}, time.time())


def test_a_container_of_a_dead_process_is_left_behind() -> None:
    code = "from workers.sandbox.docker.container import own_process; print(own_process())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    found = {**labels("me", 3600), "flywheel.process": dead.strip()}

    assert is_left_behind({"Labels": found, "State": "running"}, time.time())


def test_a_number_that_was_given_to_another_process_does_not_keep_a_container() -> None:
    found = {**labels("me", 3600), "flywheel.process": own_process().rpartition("/")[0] + "/1"}

    assert is_left_behind({"Labels": found, "State": "running"}, time.time())


@pytest.mark.parametrize(
    ("state", "ttl_s", "age_s", "expected"),
    [
        ("running", 3600, 0, False),
        ("running", -1, 0, True),
        ("exited", 3600, 5, False),
        ("exited", 3600, 3600, True),
    ],
)
def test_of_workers_elsewhere_only_age_tells(state: str, ttl_s: int, age_s: int, expected: bool) -> None:
    found = {**labels("me", ttl_s), "flywheel.process": "another-boot/pid:[1]/7/99"}
    container = {"Labels": found, "State": state, "Created": time.time() - age_s}

    assert is_left_behind(container, time.time()) is expected


@pytest.mark.parametrize("name", ["python", "lint"])
def test_layers_are_the_same_when_made_again(name: str) -> None:
    python = Python(Path("/"), "", "/usr/local/bin/python3")

    for make in (lambda: agent_layer(python), lambda: image_layer(image_named(name), with_libraries=True)):
        one, two = make(), make()

        assert one.digest == two.digest
        assert one.tar() == two.tar()


def test_another_image_is_another_layer() -> None:
    digests = {image_layer(image_named(name), with_libraries=False).digest for name in ("python", "lint")}

    assert len(digests) == 2


def test_libraries_of_this_host_lie_where_the_loader_looks() -> None:
    found = dict(libraries([Path(sys.executable).resolve(), Path("/bin/sh"), Path(__file__)]))

    assert any(path.startswith("usr/lib") and "/libc.so" in path for path in found)
    assert any("/ld-linux" in path for path in found)
    assert all(source.is_file() and not source.is_symlink() for source in found.values())
    assert dict(libraries([Path(__file__)])) == {}
