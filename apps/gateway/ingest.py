"""From spool files to the database: claim by atomic rename, ingest in chunks, delete after commit.

A claim is ``<name>.claim-<ms>-<host>-<pid>``. Reading a file twice is harmless (an operation is
unique), so every doubt is settled by reading again: claims of workers that are gone, files of
gateways that are gone, files nobody closed for five seconds.
"""

import contextlib
import json
import logging
import os
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from django.db import InterfaceError, OperationalError

from apps.feedback import services as feedback
from apps.gateway.records import Row
from apps.gateway.spool import host_name

logger = logging.getLogger(__name__)

CHUNK_ROWS = 500
FILES_PER_CALL = 100
OPEN_FILE_ORPHANED_AFTER_S = 5.0
CLAIM_EXPIRES_AFTER_S = 120.0


@dataclass
class Ingested:
    """``torn`` lines are no JSON (the tail of a crash); ``rejected`` rows the database refuses, by
    project: they stay in ``<name>.rejected``."""

    files: int = 0
    rows: int = 0
    torn: int = 0
    rejected_by_project: Counter[int] = field(default_factory=Counter)


def spool_ingest(folder: Path) -> Ingested:
    """Ingest what is ready, oldest first. Files stay when the database cannot be reached."""
    total = Ingested()
    for path in _ready(folder)[:FILES_PER_CALL]:
        claim = _claim(path)
        if claim is None:
            continue
        try:
            _ingest_file(claim, total)
        except (OperationalError, InterfaceError):
            with contextlib.suppress(OSError):
                claim.rename(claim.with_name(_original(claim.name)))
            raise
        claim.unlink(missing_ok=True)
    return total


def _ready(folder: Path) -> list[Path]:
    """Files to take: closed ones, and what dead or silent processes left."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [folder / name for name in names if _may_take(folder / name)]


def _may_take(path: Path) -> bool:
    if ".claim-" in path.name:
        claimed_ms, host, pid = path.name.rsplit(".claim-", 1)[1].split("-")[:3]
        return _is_gone(host, int(pid)) or time.time() - int(claimed_ms) / 1000 > CLAIM_EXPIRES_AFTER_S
    if path.suffix == ".jsonl":
        return True
    if path.suffix == ".open":
        _, host, pid, _ = path.stem.split("-")
        with contextlib.suppress(FileNotFoundError):
            return _is_gone(host, int(pid)) or time.time() - path.stat().st_mtime > OPEN_FILE_ORPHANED_AFTER_S
    return False


def _is_gone(host: str, pid: int) -> bool:
    """Whether a process of this host has ended; of another host we cannot know."""
    if host != host_name():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _claim(path: Path) -> Path | None:
    """The file under our name, or None when another worker was faster."""
    now_ms = time.time_ns() // 1_000_000
    claim = path.with_name(
        f"{_original(path.name)}.claim-{now_ms}-{host_name()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    )
    try:
        path.rename(claim)
    except FileNotFoundError:
        return None
    return claim


def _original(name: str) -> str:
    return name.split(".claim-", 1)[0]


def _ingest_file(path: Path, total: Ingested) -> None:
    rows, torn = _read(path)
    rejected: list[Row] = []
    for start in range(0, len(rows), CHUNK_ROWS):
        rejected += _ingest_chunk(rows[start : start + CHUNK_ROWS])
    if rejected:
        kept = path.with_name(f"{_original(path.name)}.rejected")
        kept.write_text("".join(json.dumps(row) + "\n" for row in rejected))
        kept.chmod(0o600)
    if torn or rejected:
        logger.error("spool file=%s torn=%s rejected=%s", _original(path.name), torn, len(rejected))
    total.files += 1
    total.rows += len(rows) - len(rejected)
    total.torn += torn
    total.rejected_by_project.update(int(row.get("project_id") or 0) for row in rejected)


def _read(path: Path) -> tuple[list[Row], int]:
    """The file's rows, and how many lines are none."""
    rows: list[Row] = []
    torn = 0
    for line in path.read_bytes().split(b"\n"):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            torn += 1
    return rows, torn


def _ingest_chunk(rows: list[Row]) -> list[Row]:
    """Ingest together, or one by one when one of them spoils it; returns those refused."""
    try:
        feedback.inferences_ingest(rows)
        return []
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.error("spool chunk refused rows=%s type=%s", len(rows), type(error).__name__)
        if len(rows) == 1:
            return rows
    refused: list[Row] = []
    for row in rows:
        refused += _ingest_chunk([row])
    return refused
