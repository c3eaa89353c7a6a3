"""The append-only spool: rows leave the request path here and reach the database in bulk later.

A thread writes what has gathered every 200 ms, with one fsync, and closes a file after a second
or 2,000 rows by renaming it. Names say whose they are and where they stand:

    <ms>-<host>-<pid>-<n>.open          being written
    <ms>-<host>-<pid>-<n>.jsonl         closed, to be ingested

A row that cannot be written is counted as lost and the request goes on; a half-written line is
cut off again, or skipped by the reader. Text is encrypted in the thread, before it is written.
"""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from apps.core.crypto import encrypt_bytes
from apps.gateway.records import Row

logger = logging.getLogger(__name__)

FLUSH_EVERY_S = 0.2
ROTATE_AFTER_S = 1.0
ROTATE_AFTER_ROWS = 2000
# Rows that may wait in memory while the disk is slow; beyond it they are lost and counted.
WAITING_LIMIT = 20_000


def host_name() -> str:
    """This machine's name as one part of a file name."""
    return "".join(c if c.isalnum() else "_" for c in socket.gethostname())[:40] or "host"


class Spool:
    """``append`` never blocks and never raises; ``lost`` counts rows that will never be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._waiting: list[Row] = []
        self._writing = threading.Lock()
        self._file: int | None = None
        self._path: Path | None = None
        self._opened_at = 0.0
        self._rows = 0
        self._number = 0
        self.written = 0
        self.lost = 0
        self.lost_by_project: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="gateway-spool", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Write what waits and close the file."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
            self._thread = None
        self.flush(rotate=True)

    def append(self, row: Row) -> None:
        with self._lock:
            if len(self._waiting) < WAITING_LIMIT:
                self._waiting.append(row)
                return
        self._count_lost([row])

    def waiting(self) -> int:
        return len(self._waiting)

    def flush(self, *, rotate: bool = False) -> None:
        """Write what has gathered; close the file when it is due or ``rotate`` says so."""
        with self._writing:
            with self._lock:
                rows, self._waiting = self._waiting, []
            if rows:
                try:
                    self._write(rows)
                except OSError as error:
                    self._count_lost(rows)
                    logger.error("spool rows lost count=%s errno=%s", len(rows), error.errno)
            due = time.monotonic() - self._opened_at >= ROTATE_AFTER_S or self._rows >= ROTATE_AFTER_ROWS
            if self._file is not None and (due or rotate):
                self._close()

    def _run(self) -> None:
        while not self._stop.wait(FLUSH_EVERY_S):
            try:
                self.flush()
            except Exception as error:  # the thread must outlive any one row
                logger.error("spool flush failed type=%s", type(error).__name__)

    def _write(self, rows: list[Row]) -> None:
        lines = [line for row in rows if (line := self._line(row)) is not None]
        data = b"".join(lines)
        for _ in range(2):
            descriptor, path = self._open()
            start = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                _write_all(descriptor, data)
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, start)
                raise
            self._rows += len(lines)
            if path.exists():
                break
            # Someone took the file for a dead process's. What it held is being ingested; these rows
            # may have come too late for that, so they go into a new file too: twice is harmless.
            os.close(descriptor)
            self._file = self._path = None
        self.written += len(lines)

    def _line(self, row: Row) -> bytes | None:
        """A row as a line with its text encrypted; None (and counted) if it is no JSON."""
        try:
            content = row.get("content")
            if content is not None:
                row = {**row, "content": encrypt_bytes(json.dumps(content).encode()).decode()}
            return json.dumps(row, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            self._count_lost([row])
            logger.error("spool row not written type=%s", type(error).__name__)
            return None

    def _open(self) -> tuple[int, Path]:
        if self._file is None or self._path is None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._number += 1
            name = f"{time.time_ns() // 1_000_000}-{host_name()}-{os.getpid()}-{self._number}.open"
            self._path = self.folder / name
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
            self._opened_at, self._rows = time.monotonic(), 0
        return self._file, self._path

    def _close(self) -> None:
        descriptor, path, self._file, self._path = self._file, self._path, None, None
        if descriptor is None or path is None:
            return
        os.close(descriptor)
        with contextlib.suppress(OSError):  # taken already
            if self._rows == 0:
                path.unlink()
            else:
                path.rename(path.with_suffix(".jsonl"))

    def _count_lost(self, rows: list[Row]) -> None:
        with self._lock:
            self.lost += len(rows)
            for row in rows:
                project_id = int(row.get("project_id") or 0)
                self.lost_by_project[project_id] = self.lost_by_project.get(project_id, 0) + 1


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def spool_state(folder: Path) -> dict[str, Any]:
    """Files waiting, their bytes, and the age of the oldest in seconds (None when empty)."""
    files = size = 0
    oldest: float | None = None
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            if entry.is_file() and not entry.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    stat = entry.stat()
                    files, size = files + 1, size + stat.st_size
                    oldest = min(oldest or stat.st_mtime, stat.st_mtime)
    age_s = None if oldest is None else max(0.0, time.time() - oldest)
    return {"files": files, "bytes": size, "oldest_s": age_s}
