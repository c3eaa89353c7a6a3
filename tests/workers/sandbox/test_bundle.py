"""The agent as an archive: compiled for this Python, in source for any other."""

import importlib.util
import io
import subprocess
import sys
import zipfile
from pathlib import Path

from workers.sandbox.bundle import agent_files, agent_zip

LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
import flywheel_agent.frames as frames
print(frames.__spec__.origin.rpartition(".")[2], frames.decode(frames.encode({"id": 1})))
"""


def imported_from(archive: Path) -> str:
    command = [sys.executable, "-S", "-P", "-B", "-c", LOOK, str(archive)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_every_module_is_there_compiled_and_in_source(tmp_path: Path) -> None:
    archive = tmp_path / "agent.zip"
    archive.write_bytes(agent_zip())

    names = set(zipfile.ZipFile(io.BytesIO(agent_zip())).namelist())

    assert names == set(agent_files()) | {f"{name}c" for name in agent_files()}
    assert imported_from(archive) == "pyc {'id': 1}\n"


def test_another_python_takes_the_source(tmp_path: Path) -> None:
    archive = tmp_path / "agent.zip"
    other = bytes(reversed(importlib.util.MAGIC_NUMBER))
    with zipfile.ZipFile(archive, "w") as foreign, zipfile.ZipFile(io.BytesIO(agent_zip())) as own:
        for name in own.namelist():
            content = own.read(name)
            foreign.writestr(name, other + content[4:] if name.endswith("c") else content)

    assert imported_from(archive) == "py {'id': 1}\n"
