"""Entries of data sets, the same ones in every process and on every host.

Several data sets walk over sets of strings, whose order depends on Python's hash seed. Entries are
therefore made by a child process whose seed is fixed. It is started with the first entry, keeps the
library (seconds to import) out of this process, and ends with this process: its input is then closed.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

_ROOT = Path(__file__).resolve().parent.parent.parent
_lock = threading.Lock()
_child: tuple[int, subprocess.Popen[str]] | None = None  # with the process that started it


class Entry(NamedTuple):
    """``digest`` is of question and answer as the library makes them; ``answer`` may be our own."""

    question: str
    answer: str
    digest: str


class NotMade(RuntimeError):
    """The library could not make an entry."""


def entry(name: str, seed: int, config: Mapping[str, Any]) -> Entry | None:
    """Entry 0 of the data set; None for one without a known answer. Raises ``NotMade``."""
    return _entry(name, seed, json.dumps(config, sort_keys=True))


@lru_cache(maxsize=4096)
def _entry(name: str, seed: int, config: str) -> Entry | None:
    made = _ask({"name": name, "seed": seed, "config": json.loads(config)})
    if made is None:
        return None
    if "error" in made:
        raise NotMade(f"reasoning-gym could not make an entry of {name}: {made['error']}")
    return Entry(made["question"], made["answer"], made["digest"])


def _ask(request: Mapping[str, Any]) -> Any:
    with _lock:
        child = _running()
        reader, writer = _ends(child)
        try:
            writer.write(json.dumps(request) + "\n")
            writer.flush()
            line = reader.readline()
        except OSError:
            line = ""
        if line:
            return json.loads(line)
        _end(child)
        raise NotMade(f"The process that makes entries ended with code {child.returncode}.")


def _running() -> subprocess.Popen[str]:
    """The child of this very process: one that was inherited by a fork is its parent's."""
    global _child
    if _child is None or _child[0] != os.getpid() or _child[1].poll() is not None:
        started = subprocess.Popen(
            [sys.executable, "-m", "packs.reasoning.maker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
            text=True,
            encoding="utf-8",
        )
        _child = (os.getpid(), started)
    return _child[1]


def _ends(child: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    reader, writer = child.stdout, child.stdin
    if reader is None or writer is None:
        raise NotMade("The process that makes entries has no streams.")
    return reader, writer


def _end(child: subprocess.Popen[str]) -> None:
    for stream in _ends(child):
        with contextlib.suppress(OSError):
            stream.close()
    child.kill()
    child.wait()
