"""Which sandbox this worker uses: read from the environment here and nowhere else.

FLYWHEEL_SANDBOX          ``bubblewrap`` (default: embedded), ``bubblewrap-cold`` (slower, for hosts that
                          refuse namespaces within namespaces) or ``docker``
FLYWHEEL_DOCKER_HOST      the engine, default ``unix:///var/run/docker.sock`` (or DOCKER_HOST)
FLYWHEEL_DOCKER_RUNTIME   an engine's runtime such as ``runsc`` (gVisor) or ``kata``; default the engine's own
FLYWHEEL_DOCKER_BASE      a base image with its digest; default none: made from what this host has
FLYWHEEL_DOCKER_PYTHON    where that base image has its Python, default ``/usr/local/bin/python3``
FLYWHEEL_DOCKER_CPUS      CPUs that one container may use, default 1
FLYWHEEL_DOCKER_TTL_S     after how many seconds any worker may end a container, default 21600
FLYWHEEL_DOCKER_OWNER     whose containers these are on an engine that several share, default ``flywheel``
"""

import os
from collections.abc import Mapping
from functools import lru_cache

from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.cold import ColdBubblewrapBackend
from workers.sandbox.docker.settings import docker_settings
from workers.sandbox.protocol import Backend, SandboxUnavailable

_BACKENDS = ("bubblewrap", "bubblewrap-cold", "docker")


@lru_cache(maxsize=1)
def sandbox_backend() -> Backend:
    """The backend of this process. Raises ``SandboxUnavailable`` for settings that name none."""
    return chosen_backend(os.environ)


def chosen_backend(environment: Mapping[str, str]) -> Backend:
    name = environment.get("FLYWHEEL_SANDBOX") or "bubblewrap"
    if name not in _BACKENDS:
        raise SandboxUnavailable(
            f"FLYWHEEL_SANDBOX is {name!r}, which is no sandbox.", f"Set it to {' or '.join(_BACKENDS)}."
        )
    if name == "bubblewrap":
        return BubblewrapBackend()
    if name == "bubblewrap-cold":
        return ColdBubblewrapBackend()
    from workers.sandbox.docker.backend import DockerBackend  # the SDK is imported where it is used

    return DockerBackend(docker_settings(environment))
