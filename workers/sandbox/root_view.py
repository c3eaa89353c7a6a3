"""What a sandbox of this host sees: the options of bwrap that build its root, and its environment."""

import os
from dataclasses import dataclass

from workers.sandbox.images import INSIDE, Image
from workers.sandbox.installation import Python

WORKSPACE = "/workspace"
AGENT = "/opt/flywheel/agent.zip"
_BIN = "/opt/flywheel/bin"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_FOLDERS = ("/dev/shm", "/tmp", WORKSPACE)

# ``python`` for shells and scripts; the agent starts the interpreter itself.
_WRAPPER = '#!/bin/sh\nexec {executable} -s -S -P -B "$@"\n'


@dataclass(frozen=True)
class Files:
    """Descriptors that bwrap reads: the agent and the wrapper (once for each name)."""

    agent: int
    python: int
    python3: int


def wrapper(python: Python) -> bytes:
    return _WRAPPER.format(executable=python.executable).encode()


def environment(python: Python, image: Image | None) -> dict[str, str]:
    """What every program gets. The number of threads is one: sandboxes share the host's processors."""
    found = {
        "PATH": f"{_BIN}:{python.root}/bin:{_PATH}" if python.root else f"{_BIN}:{_PATH}",
        "HOME": WORKSPACE,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if python.root:  # a moved libpython is not where the executable remembers it
        found["LD_LIBRARY_PATH"] = f"{python.root}/lib"
    if image is not None:
        own = image.environment()
        found["PYTHONPATH"] = own["PYTHONPATH"]
        found["PATH"] = f"{own['PATH']}:{found['PATH']}"
    return found


def root_options(python: Python, image: Image | None, files: Files, *, size: int) -> list[str]:
    """Read-only but for the small folders, of ``size`` bytes each."""
    options = ["--ro-bind", "/usr", "/usr", *_system_folders()]
    options += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    if python.root:
        options += ["--ro-bind", str(python.prefix), python.root]
    if image is not None:
        options += ["--ro-bind", str(image.root), INSIDE]
    options += ["--perms", "0444", "--file", str(files.agent), AGENT]
    for name, descriptor in (("python", files.python), ("python3", files.python3)):
        options += ["--perms", "0555", "--file", str(descriptor), f"{_BIN}/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for folder in _FOLDERS:
        options += ["--perms", "0700", "--size", str(size), "--tmpfs", folder]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _system_folders() -> list[str]:
    options: list[str] = []
    for folder in ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"):
        if os.path.islink(folder):
            options += ["--symlink", os.readlink(folder).lstrip("/"), folder]
        elif os.path.isdir(folder):
            options += ["--ro-bind", folder, folder]
    return options
