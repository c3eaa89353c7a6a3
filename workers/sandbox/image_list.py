"""The declared list of an environment image: what it holds, written down in ``images/<name>.toml``.

description = "one sentence"
packages = ["numpy==2.4.6"]      # distributions of the worker's own locked environment
dependencies = false             # true: also all that the packages need, at the installed versions
commands = ["ruff"]              # programs that these packages installed, to be found on PATH
leave_out = ["*/docs/*"]         # files that no program needs, besides tests and headers
[files]                          # more files, by their path in the image
"share/rules.txt" = "text"
"""

import hashlib
import importlib.metadata
import json
import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from workers.sandbox.protocol import SandboxUnavailable

_FOLDER = Path(__file__).with_name("images")
_KEYS = {"description", "packages", "dependencies", "commands", "leave_out", "files"}
_INSTALL = "Run make setup: it installs the locked environment."
FORMAT = "flywheel-image-1"


@dataclass(frozen=True)
class ImageList:
    """One declared list with every distribution resolved to the installed version."""

    name: str
    description: str
    packages: tuple[str, ...]  # "name==version", in order of name
    commands: tuple[str, ...]
    leave_out: tuple[str, ...]
    files: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """The same for every host on which the list means the same: what is declared, what that
        resolves to, and the interpreter and machine that the binaries are made for."""
        declared = [self.packages, self.commands, self.leave_out, self.files]
        text = json.dumps([FORMAT, abi(), declared], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def distributions(self) -> Iterator[importlib.metadata.Distribution]:
        for package in self.packages:
            yield importlib.metadata.distribution(package.partition("==")[0])


def abi() -> str:
    """The interpreter and machine that compiled files belong to, as in ``cpython-311-x86_64-linux``."""
    return f"{sys.implementation.cache_tag}-{platform.machine()}-{sys.platform}"


def image_names(folder: Path = _FOLDER) -> tuple[str, ...]:
    """Every image that is declared."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def image_list(name: str, folder: Path = _FOLDER) -> ImageList:
    """The list ``name``. Raises ``SandboxUnavailable`` when there is none, when it says something that
    no list says, or when a package is not installed at the declared version."""
    if name not in image_names(folder):
        known = ", ".join(image_names(folder))
        raise SandboxUnavailable(
            f"There is no environment image {name!r}.", f"Use one of {known}, or declare it in {folder}."
        )
    path = folder / f"{name}.toml"
    declared = tomllib.loads(path.read_text())
    if unknown := sorted(declared.keys() - _KEYS):
        raise SandboxUnavailable(
            f"The image {name!r} declares {unknown[0]!r}, which no image has.", f"Correct {path}."
        )
    return ImageList(
        name=name,
        description=str(declared.get("description", "")),
        packages=_resolved(name, declared),
        commands=tuple(sorted(declared.get("commands", ()))),
        leave_out=tuple(sorted(declared.get("leave_out", ()))),
        files=tuple(sorted(declared.get("files", {}).items())),
    )


def _resolved(name: str, declared: dict[str, Any]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    waiting = [_pinned(name, text) for text in declared.get("packages", ())]
    while waiting:
        wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if key in found and not wanted.extras:
            continue
        try:
            distribution = importlib.metadata.distribution(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            raise SandboxUnavailable(
                f"The image {name!r} needs {wanted}, which is not installed.", _INSTALL
            ) from None
        if not wanted.specifier.contains(distribution.version, prereleases=True):
            raise SandboxUnavailable(
                f"The image {name!r} needs {wanted}, but {distribution.version} is installed.", _INSTALL
            )
        if key not in found and declared.get("dependencies", False):
            waiting += _needed(distribution, wanted.extras)
        found[key] = distribution.version
    return tuple(f"{key}=={version}" for key, version in sorted(found.items()))


def _pinned(name: str, text: str) -> Requirement:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        wanted = None
    if wanted is None or not re.fullmatch(r"==[^*,]+", str(wanted.specifier)):
        raise SandboxUnavailable(
            f"The image {name!r} declares {text!r}, which is not name==version.", "Pin it exactly."
        )
    return wanted


def _needed(distribution: importlib.metadata.Distribution, extras: set[str]) -> list[Requirement]:
    requirements = [Requirement(text) for text in distribution.requires or ()]
    return [
        needed
        for needed in requirements
        if needed.marker is None
        or any(needed.marker.evaluate({"extra": extra}) for extra in (extras or {""}))
    ]
