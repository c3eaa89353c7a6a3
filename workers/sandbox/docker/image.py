"""Docker images for environment images, made on the engine itself: no registry is asked.

Three layers: the system (or a base image of the operator's), the environment image, the agent. Each tag
names its content (``flywheel-sandbox:<name>-<digest12>``), so a changed list, agent or Python is another
tag, what did not change is shared, and an engine that has the tag needs nothing.
"""

import contextlib
import hashlib
import io
import tarfile
import threading
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import docker.errors

from workers.sandbox.docker.engine import Engine
from workers.sandbox.docker.rootfs import (
    PYTHON_ROOT,
    Layer,
    agent_layer,
    image_layer,
    python_inside,
    system_layer,
)
from workers.sandbox.docker.start import START
from workers.sandbox.images import Image, image_named
from workers.sandbox.installation import Python
from workers.sandbox.protocol import SandboxUnavailable
from workers.sandbox.root_view import environment

REPOSITORY = "flywheel-sandbox"
LABEL = "flywheel.image"
_SEARCHED = ("/", "/usr", "/usr/local")  # by shells and the loader
_KEPT = 3
_FLAGS = ("-s", "-S", "-P", "-B")
_building = threading.Lock()


def container_image(engine: Engine, name: str) -> str:
    """The tag of the Docker image for the environment image ``name``, made if the engine lacks it
    (blocks for seconds). Raises ``SandboxUnavailable``."""
    with _building:
        base, python = engine.settings.base, _python(engine)
        packages = _files(image_named(name), not base)
        below = base or _tag("system", _system(), "")
        files = _tag(f"{name}-files", packages, below) if packages.files else below
        tag = _tag(name, _agent(python), files)
        if _has(engine.api, tag):
            return tag
        if not _has(engine.api, below):
            if base:
                _refuse(base)
            _import(engine.api, _system(), below)
        if not _has(engine.api, files):
            _add(engine.api, packages, below, files)
        _add(engine.api, _agent(python), files, tag)
        _forget_old(engine.api, {below, files, tag})
    return tag


def start_of(engine: Engine) -> list[str]:
    """The command line of a container's first process, but for the agent's options: it is served on
    its own standard input and output."""
    return [_python(engine).executable, *_FLAGS, START, "0", "1"]


def program_environment(engine: Engine, name: str) -> dict[str, str]:
    """What every program of the image ``name`` gets. Raises ``SandboxUnavailable``."""
    return environment(_python(engine), image_named(name))


def _python(engine: Engine) -> Python:
    if engine.settings.base:
        root = Path(engine.settings.python).parent.parent
        return Python(root, "" if str(root) in _SEARCHED else str(root), engine.settings.python)
    return Python(Path(PYTHON_ROOT), PYTHON_ROOT, python_inside())


@lru_cache(maxsize=1)
def _system() -> Layer:
    return system_layer()


@lru_cache(maxsize=16)
def _files(image: Image, with_libraries: bool) -> Layer:
    return image_layer(image, with_libraries=with_libraries)


@lru_cache(maxsize=4)
def _agent(python: Python) -> Layer:
    return agent_layer(python)


def _tag(kind: str, layer: Layer, below: str) -> str:
    return f"{REPOSITORY}:{kind}-{hashlib.sha256(f'{layer.digest} {below}'.encode()).hexdigest()[:12]}"


def _has(api: Any, reference: str) -> bool:
    try:
        api.inspect_image(reference)
    except docker.errors.ImageNotFound:
        return False
    return True


def _refuse(base: str) -> NoReturn:
    """Instead of building on it: the engine would ask a registry."""
    raise SandboxUnavailable(
        f"The Docker engine has no image {base}.",
        f"Run docker pull {base} on it, or unset FLYWHEEL_DOCKER_BASE.",
    )


def _import(api: Any, layer: Layer, tag: str) -> None:
    changes = [f"ENV LD_LIBRARY_PATH={PYTHON_ROOT}/lib"]
    repository, _, version = tag.partition(":")
    answer = api.import_image_from_data(layer.tar(), repository=repository, tag=version, changes=changes)
    if not _has(api, tag):
        raise SandboxUnavailable(
            f"The Docker engine did not take an image ({str(answer).strip()[-200:]}).",
            "See that its disk has room.",
        )


def _add(api: Any, layer: Layer, below: str, tag: str) -> None:
    """An image of ``layer`` on top of another."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        dockerfile = f"FROM {below}\nADD layer.tar /\n".encode()
        for path, data in (("Dockerfile", dockerfile), ("layer.tar", layer.tar())):
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    context.seek(0)
    options = {"custom_context": True, "rm": True, "forcerm": True, "network_mode": "none", "decode": True}
    said = list(api.build(fileobj=context, tag=tag, labels={LABEL: tag}, **options))
    if errors := [str(line["error"]) for line in said if "error" in line]:
        raise SandboxUnavailable(
            f"The image {tag} could not be built ({errors[0][:200]}).", "See that the engine's disk has room."
        )


def _forget_old(api: Any, made_now: Collection[str]) -> None:
    """Keep the last few versions of each image; one that a container uses, or another rests on, stays.
    So does what was ``made_now``: an engine that still had its layers gives it the date of their making.
    """
    versions: dict[str, list[tuple[int, str]]] = {}
    for image in api.images(name=REPOSITORY):
        for tag in image["RepoTags"] or ():
            versions.setdefault(tag.rpartition("-")[0], []).append((int(image["Created"]), tag))
    for made in versions.values():
        for _, tag in sorted(made, reverse=True)[_KEPT:]:
            if tag in made_now:
                continue
            with contextlib.suppress(docker.errors.APIError):
                api.remove_image(tag)
