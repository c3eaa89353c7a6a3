"""One Docker engine as an asyncio program sees it: blocking SDK calls on a few threads."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import docker
import docker.errors
import requests

from workers.sandbox.docker.settings import DockerSettings
from workers.sandbox.protocol import SandboxUnavailable

_THREADS = 8
_TIMEOUT_S = 60
# What the SDK raises when the engine is at fault, or is not there.
ENGINE_ERRORS = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)

P = ParamSpec("P")
R = TypeVar("R")


class Engine:
    """A client that is made on first use, again in a forked process."""

    def __init__(self, settings: DockerSettings) -> None:
        self.settings = settings
        self._pid = 0
        self._client: Any = None
        self._threads: ThreadPoolExecutor | None = None

    @property
    def api(self) -> Any:
        """The SDK's low-level client. Raises ``SandboxUnavailable`` when no engine answers."""
        if self._pid != os.getpid():
            try:
                self._client = docker.APIClient(self.settings.host, version="auto", timeout=_TIMEOUT_S)
            except ENGINE_ERRORS as error:
                raise SandboxUnavailable(*unreachable(self.settings.host, error)) from error
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="docker")
            self._pid = os.getpid()
        return self._client

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """``function`` on one of the engine's threads. A caller that is cancelled does not stop it."""
        await asyncio.to_thread(lambda: self.api) if self._pid != os.getpid() else None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Let go of threads and connections; the next call makes new ones."""
        if self._pid == os.getpid() and self._threads is not None:
            self._pid = 0
            self._threads.shutdown()
            self._client.close()


def remove_container(api: Any, id: str) -> bool:
    """End and remove; False if it was not there, or the engine would not (then it is reaped later). One
    that is just ending by itself cannot be ended: that is tried again."""
    tried = False
    for pause_s in (0.02, 0.1, 0.5, 2.0):
        try:
            api.remove_container(id, force=True, v=True)
            return True
        except docker.errors.NotFound:
            return tried
        except ENGINE_ERRORS:
            tried = True
            time.sleep(pause_s)
    return False


def unreachable(host: str, error: Exception) -> tuple[str, str]:
    """(reason, fix) for an engine that does not answer."""
    said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    path = host.removeprefix("unix://")
    if path != host and not os.path.exists(path):
        return (
            f"There is no Docker engine at {host}.",
            "Start dockerd, or name another engine in FLYWHEEL_DOCKER_HOST.",
        )
    if path != host and not os.access(path, os.R_OK | os.W_OK):
        return (
            f"This user may not speak to the Docker engine at {host}.",
            "Add the worker's user to the group docker, or use a rootless engine.",
        )
    return f"The Docker engine at {host} does not answer ({said}).", "Look at the engine's log."
