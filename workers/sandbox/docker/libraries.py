"""Which shared libraries of this host a set of programs needs, and where a container finds them."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from workers.sandbox.protocol import SandboxUnavailable

_LOADED_LATER = ("libgcc_s.so.1", "libstdc++.so.6")  # by dlopen: the loader does not list them


def libraries(sources: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(path inside, file here) of every library outside the copied trees that the loader would take for
    the binaries among ``sources``; all lie beside the C library. Raises ``SandboxUnavailable``."""
    binaries = [source for source in sources if _is_binary(source)]
    here = {str(binary) for binary in binaries}
    found = _needed(binaries)
    if not found:
        return
    home = next((path.parent for path in found if path.name.startswith("libc.so")), None)
    if home is None:
        raise SandboxUnavailable(
            "ldd did not say where the C library is.",
            "Install ldd, or name a base image (FLYWHEEL_DOCKER_BASE).",
        )
    found |= {home / name for name in _LOADED_LATER if (home / name).exists()}
    for path in sorted(found):
        if str(path) in here or "libpython" in path.name or _inside_a_package(path):
            continue
        # A loader is named by its whole path in every program; all else is looked for in one place.
        place = path if path.name.startswith("ld-") else home / path.name
        yield _merged(place), path.resolve()


def _needed(binaries: list[Path]) -> set[Path]:
    libraries = Path(sys.base_prefix).resolve() / "lib"
    found: set[Path] = set()
    for start in range(0, len(binaries), 50):
        done = subprocess.run(
            ["ldd", *map(str, binaries[start : start + 50])],
            capture_output=True,
            text=True,
            env={"LD_LIBRARY_PATH": str(libraries), "PATH": "/usr/bin:/bin"},
        )
        for line in done.stdout.splitlines():
            words = line.split()
            for word in words[:1] + words[2:3]:
                if word.startswith("/") and not word.endswith(":"):
                    found.add(Path(word))
    return found


def _merged(path: Path) -> str:
    """/lib, /lib64 and /bin are links into /usr here, whatever they are on the host."""
    parts = PurePosixPath(path).parts[1:]
    return str(PurePosixPath(*(parts if parts[0] == "usr" else ("usr", *parts))))


def _inside_a_package(path: Path) -> bool:
    return any(part in ("site-packages", "images") or part.endswith(".libs") for part in path.parts)


def _is_binary(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"
