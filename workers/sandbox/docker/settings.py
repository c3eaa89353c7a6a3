"""What an operator may choose about containers, read from the environment (``choice.py`` lists it)."""

from collections.abc import Mapping
from dataclasses import dataclass

from workers.sandbox.protocol import SandboxUnavailable


@dataclass(frozen=True)
class DockerSettings:
    """``runtime`` "" is the engine's own; ``base`` "" is a root file system made from this host."""

    host: str = "unix:///var/run/docker.sock"
    runtime: str = ""
    base: str = ""
    python: str = "/usr/local/bin/python3"
    cpus: float = 1.0
    ttl_s: int = 6 * 3600
    owner: str = "flywheel"


def docker_settings(environment: Mapping[str, str]) -> DockerSettings:
    """Raises ``SandboxUnavailable`` for a number that is none."""
    default = DockerSettings()
    base = environment.get("FLYWHEEL_DOCKER_BASE") or ""
    if base and "@sha256:" not in base and not base.startswith("sha256:"):
        raise SandboxUnavailable(
            f"FLYWHEEL_DOCKER_BASE is {base!r}, a name that may mean another image tomorrow.",
            "Name it with its digest: python@sha256:…",
        )
    try:
        return DockerSettings(
            host=environment.get("FLYWHEEL_DOCKER_HOST") or environment.get("DOCKER_HOST") or default.host,
            runtime=environment.get("FLYWHEEL_DOCKER_RUNTIME") or "",
            base=base,
            python=environment.get("FLYWHEEL_DOCKER_PYTHON") or default.python,
            cpus=float(environment.get("FLYWHEEL_DOCKER_CPUS") or default.cpus),
            ttl_s=int(environment.get("FLYWHEEL_DOCKER_TTL_S") or default.ttl_s),
            owner=environment.get("FLYWHEEL_DOCKER_OWNER") or default.owner,
        )
    except ValueError as error:
        raise SandboxUnavailable(
            f"A setting of the Docker sandbox is no number ({error}).",
            "Correct FLYWHEEL_DOCKER_CPUS and FLYWHEEL_DOCKER_TTL_S.",
        ) from error
