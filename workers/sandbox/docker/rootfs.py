"""The root file system of a container in layers, made without a registry from what this host has.

Below: Python with its standard library at ``/python`` (as in the embedded sandbox), a shell, the usual
small programs and the libraries they need. Above: the environment image at ``/opt/image``, and the agent
at ``/opt/flywheel``. Nothing of the host's configuration.
"""

import fnmatch
import hashlib
import io
import json
import shutil
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workers.sandbox.bundle import agent_zip
from workers.sandbox.docker import start as docker_start
from workers.sandbox.docker.libraries import libraries
from workers.sandbox.docker.start import FILTER, START
from workers.sandbox.image_pyc import precompile
from workers.sandbox.images import INSIDE, Image
from workers.sandbox.installation import Python
from workers.sandbox.protocol import SandboxUnavailable
from workers.sandbox.root_view import AGENT, wrapper
from workers.sandbox.seccomp import filter_program

PYTHON_ROOT = "/python"
_BIN = "/opt/flywheel/bin"
_NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
# fmt: off
_COMMANDS = (
    "awk", "base64", "basename", "bash", "bunzip2", "bzip2", "cat", "chgrp", "chmod", "chown", "cksum",
    "cmp", "comm", "cp", "csplit", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "egrep",
    "env", "expand", "expr", "factor", "false", "fgrep", "find", "fold", "getopt", "grep", "gunzip",
    "gzip", "head", "hostname", "id", "join", "kill", "link", "ln", "ls", "md5sum", "mkdir", "mkfifo",
    "mknod", "mktemp", "mount", "mv", "nice", "nl", "nohup", "nproc", "od", "paste", "patch", "pathchk",
    "pgrep", "pkill", "printf", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq",
    "setsid", "sh", "sha1sum", "sha256sum", "sha512sum", "shred", "shuf", "sleep", "sort", "split",
    "stat", "stdbuf", "sum", "sync", "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr",
    "true", "truncate", "tsort", "umount", "uname", "unexpand", "uniq", "unlink", "unshare", "unxz",
    "wc", "which", "whoami", "xargs", "xz", "yes", "zcat",
)
# fmt: on
_NOT_IN_STDLIB = (
    *("site-packages/*", "test/*", "*/tests/*", "*/test/*", "idlelib/*", "tkinter/*", "turtledemo/*"),
    *("ensurepip/*", "lib2to3/*", "config-*", "*/__pycache__/*", "__pycache__/*", "_tkinter*", "*/_tkinter*"),
)
_LINKS = (("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"))
_FOLDERS = (
    *((name, 0o755) for name in ("dev", "etc", "proc", "sys", "usr/bin", "usr/lib", "usr/lib64")),
    *((name, 0o700) for name in ("tmp", "workspace")),  # what is mounted there takes the mode
)
_TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


@dataclass(frozen=True)
class _File:
    path: str
    source: Path | bytes
    mode: int

    def read(self) -> bytes:
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


@dataclass(frozen=True)
class _Compiled:
    """Modules at ``folder``, a copy of parts of ``original``, whose compiled caches come along."""

    folder: str
    original: Path


class Layer:
    """Files by path, links and folders. ``digest`` names the content; compiled caches are derived and
    no part of it. ``known`` spares hashing what a digest names already."""

    def __init__(
        self,
        files: Iterable[_File],
        *,
        known: str = "",
        links: Iterable[tuple[str, str]] = (),
        folders: Iterable[tuple[str, int]] = (),
        compiled: Iterable[_Compiled] = (),
    ) -> None:
        self.files = {file.path: file for file in files}
        self._links, self._folders, self._compiled = tuple(links), tuple(folders), tuple(compiled)
        hashed = [] if known else [[path, self.files[path].mode, _sha256(self.files[path])] for path in self]
        text = json.dumps([known, hashed, self._links, self._folders])
        self.digest = hashlib.sha256(text.encode()).hexdigest()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.files))

    def tar(self) -> bytes:
        """Owned by root, the same bytes for the same content."""
        with tempfile.TemporaryDirectory(prefix="flywheel-layer-") as folder:
            self._write(Path(folder))
            return _tar(Path(folder))

    def _write(self, root: Path) -> None:
        for name, mode in self._folders:
            (root / name).mkdir(parents=True, exist_ok=True)
            (root / name).chmod(mode)
        for path in self:
            file, target = self.files[path], root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(file.source, Path):
                shutil.copyfile(file.source, target)
            else:
                target.write_bytes(file.source)
            target.chmod(file.mode)
        for link, to in self._links:
            (root / link).symlink_to(to)
        for each in self._compiled:
            precompile(root / each.folder, each.original)


def system_layer() -> Layer:
    """What lies below everything else. Raises ``SandboxUnavailable``."""
    files = [*_texts(), *_python(), *_programs()]
    root, standard = PYTHON_ROOT.lstrip("/"), Path(sysconfig.get_paths()["stdlib"])
    return Layer(
        [*files, *_libraries(files)],
        links=[*_LINKS, *((f"{root}/bin/{alias}", _NAME) for alias in ("python3", "python"))],
        folders=_FOLDERS,
        compiled=[_Compiled(f"{root}/lib/{_NAME}", standard)],
    )


def image_layer(image: Image, *, with_libraries: bool) -> Layer:
    """The environment image, and of this host's libraries what it needs beyond the system's."""
    files = list(_tree(image.root, INSIDE))
    needed = _libraries(files) if with_libraries else []
    return Layer(
        [*files, *needed],
        known=json.dumps([image.digest, [[file.path, _sha256(file)] for file in needed]]),
        compiled=[_Compiled(f"{INSIDE.lstrip('/')}/lib", Path(sysconfig.get_paths()["purelib"]))],
    )


def agent_layer(python: Python) -> Layer:
    """The agent, started by ``python``, and ``python`` for shells."""
    files = [
        _File(AGENT.lstrip("/"), agent_zip(), 0o644),
        _File(START.lstrip("/"), Path(docker_start.__file__).read_bytes(), 0o644),
        _File(FILTER.lstrip("/"), filter_program(), 0o644),
    ]
    files += [_File(f"{_BIN.lstrip('/')}/{name}", wrapper(python), 0o755) for name in ("python", "python3")]
    return Layer(files)


def python_inside() -> str:
    return f"{PYTHON_ROOT}/bin/{_NAME}"


def _texts() -> Iterator[_File]:
    for path, text in _TEXTS.items():
        yield _File(path, text.encode(), 0o644)


def _tree(root: Path, inside: str) -> Iterator[_File]:
    for source in sorted(root.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
            yield _File(f"{inside.lstrip('/')}/{source.relative_to(root)}", source, mode)


def _python() -> Iterator[_File]:
    prefix, root = Path(sys.base_prefix).resolve(), PYTHON_ROOT.lstrip("/")
    yield _File(f"{root}/bin/{_NAME}", prefix / "bin" / _NAME, 0o755)
    for library in sorted((prefix / "lib").glob("libpython*.so*")):
        yield _File(f"{root}/lib/{library.name}", library, 0o755)
    standard = Path(sysconfig.get_paths()["stdlib"])
    for source in sorted(standard.rglob("*")):
        relative = source.relative_to(standard).as_posix()
        if source.is_file() and not any(fnmatch.fnmatchcase(relative, each) for each in _NOT_IN_STDLIB):
            yield _File(f"{root}/lib/{_NAME}/{relative}", source, 0o644)


def _programs() -> Iterator[_File]:
    for name in _COMMANDS:
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            yield _File(f"usr/bin/{name}", Path(found).resolve(), 0o755)
        elif name == "sh":
            raise SandboxUnavailable("This host has no /bin/sh.", "Name a base image (FLYWHEEL_DOCKER_BASE).")


def _libraries(files: Iterable[_File]) -> list[_File]:
    found = libraries(file.source for file in files if isinstance(file.source, Path))
    return [_File(path, source, 0o755) for path, source in found]


def _sha256(file: _File) -> str:
    return hashlib.sha256(file.read()).hexdigest()


def _tar(folder: Path) -> bytes:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=plain)
    return held.getvalue()
