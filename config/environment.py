"""Make the virtual environments. Runs on the standard library alone, before anything is installed.

``python3 config/environment.py run | dev | vllm``. Says what it is going to download; does
nothing when the environment already matches the lock files.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
NEEDED, TOO_NEW = (3, 11), (3, 14)
SIZES = {
    "run": "about 3 GB of packages and needs 6 GB of disk, because PyTorch comes with CUDA (450 MB and "
    "2.5 GB where your package index offers its CPU build); it takes some minutes",
    "dev": "about 100 MB of packages for tests and checks",
    "vllm": "about 900 MB of packages for vLLM on CPU and 5 GB of disk",
}
FILES = {
    "run": ["hashed.txt", "run.txt"],
    "dev": ["hashed.txt", "run.txt", "dev.txt"],
    "vllm": ["vllm.txt"],
}


def main(kind: str) -> int:
    if kind not in FILES:
        print(f"Usage: python3 config/environment.py {' | '.join(FILES)}")
        return 2
    if not NEEDED <= sys.version_info[:2] < TOO_NEW:
        print(f"Flywheel needs Python 3.{NEEDED[1]} to 3.{TOO_NEW[1] - 1}; this is {sys.version.split()[0]}.")
        return 1
    folder = ROOT / (".venv-vllm" if kind == "vllm" else ".venv")
    digest = _digest(kind)
    if _python(folder).exists() and _stamped(folder, kind) == digest:
        return 0
    if kind == "dev" and (code := main("run")):
        return code
    print(f"Installing into {folder.name}: this downloads {SIZES[kind]}.", flush=True)
    try:
        _install(folder, kind)
    except subprocess.CalledProcessError as error:
        print(
            f"Installing failed (pip ended with {error.returncode}); its message is above. "
            "Nothing was started."
        )
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the same command goes on where it was.")
        return 130
    _stamp(folder, kind).write_text(digest)
    print("Installed.", flush=True)
    return 0


def _install(folder: Path, kind: str) -> None:
    _stamp(folder, kind).unlink(missing_ok=True)
    if not _has_pip(folder):
        venv.create(folder, with_pip=True)
    files = FILES[kind][-1:] if kind == "dev" else FILES[kind]
    for number, name in enumerate(files, start=1):
        print(f"  {number} of {len(files)}: requirements/{name} …", flush=True)
        strict = ["--require-hashes", "--no-deps"] if name == "hashed.txt" else []
        _pip(folder, "install", "-q", *strict, "-r", str(REQUIREMENTS / name))
    if kind == "vllm":
        # Their builds do not match this torch, and text models do not need them.
        _pip(folder, "uninstall", "-q", "-y", "torchvision", "torchaudio", "torchcodec")
    else:
        _pip(folder, "install", "-q", "--no-deps", "--no-build-isolation", "-e", str(ROOT))


def _digest(kind: str) -> str:
    """Of everything that decides what is installed."""
    paths = [*(REQUIREMENTS / name for name in FILES[kind]), ROOT / "pyproject.toml"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _stamped(folder: Path, kind: str) -> str:
    """The digest of what was installed last; empty if that never ended well."""
    stamp = _stamp(folder, kind)
    return stamp.read_text() if stamp.is_file() else ""


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _has_pip(folder: Path) -> bool:
    """False too for an environment that was interrupted while it was made, or whose Python is gone."""
    if not _python(folder).exists():
        return False
    return not subprocess.run([_python(folder), "-m", "pip", "--version"], capture_output=True).returncode


def _stamp(folder: Path, kind: str) -> Path:
    return folder / f".flywheel-{kind}"


def _pip(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run([_python(folder), "-m", "pip", *arguments], check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "run"))
