"""Answers of earlier runs on this machine, a file each: off unless a run asks for it.

Whatever could change an answer is in its key (``workers.remembering``), so a hit is an answer to the
very same request. A file is written beside its place and renamed, and carries its own checksum: two
workers at once do no harm, and a damaged entry is as if it were not there. Old entries go first when
the cache outgrows its size.

FLYWHEEL_RESPONSE_CACHE        the folder, default ``response-cache`` below FLYWHEEL_DATA
FLYWHEEL_RESPONSE_CACHE_DAYS   how long an entry is good, default 30
FLYWHEEL_RESPONSE_CACHE_BYTES  how large the folder may grow, default 1 GiB
"""

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from artifacts import json_bytes

DAY_S = 24 * 3600.0
SWEEP_EVERY_S = 600.0
_SWEPT = ".swept"
_counter = itertools.count()


class _Entry(NamedTuple):
    written: float
    size: int
    path: Path


class ResponseCache:
    """Replies (JSON) by key, a lower-case hex digest, below ``folder``."""

    def __init__(
        self,
        folder: Path,
        *,
        max_age_s: float = 30 * DAY_S,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._max_age_s, self._max_bytes = max_age_s, max_bytes
        self._clock = clock

    @classmethod
    def from_environment(cls) -> Self:
        data = Path(os.environ.get("FLYWHEEL_DATA") or "var")
        return cls(
            Path(os.environ.get("FLYWHEEL_RESPONSE_CACHE") or data / "response-cache"),
            max_age_s=float(os.environ.get("FLYWHEEL_RESPONSE_CACHE_DAYS") or 30) * DAY_S,
            max_bytes=int(os.environ.get("FLYWHEEL_RESPONSE_CACHE_BYTES") or 1 << 30),
        )

    def get(self, key: str) -> Any:
        """The reply; None for an entry that is absent, too old, damaged or another's."""
        path = self._path(key)
        try:
            with path.open("rb") as stream:
                if self._clock() - os.fstat(stream.fileno()).st_mtime > self._max_age_s:
                    return None
                checksum, _, body = stream.read().partition(b"\n")
            if sha256(body).hexdigest().encode() != checksum:
                return None
            entry = json.loads(body)
        except (OSError, ValueError):
            return None
        return entry.get("reply") if isinstance(entry, dict) and entry.get("key") == key else None

    def put(self, key: str, reply: Any) -> None:
        """Keep ``reply``. A full disk costs the entry, not the run."""
        body = json_bytes({"key": key, "reply": reply}, allow_nan=True)
        path = self._path(key)
        partial = path.with_name(f".{path.name}.{os.getpid()}.{next(_counter)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(partial, "wb", opener=_private) as stream:
                stream.write(sha256(body).hexdigest().encode() + b"\n" + body)
            os.utime(partial, (self._clock(), self._clock()))
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()

    def sweep(self) -> int:
        """Remove what is too old, then the oldest until the rest fits; returns how many entries. At most
        once in ten minutes for all workers of the machine."""
        marker, now = self._folder / _SWEPT, self._clock()
        with contextlib.suppress(OSError):
            if now - marker.stat().st_mtime < SWEEP_EVERY_S:
                return 0
        if not self._folder.is_dir():
            return 0
        with contextlib.suppress(OSError):
            marker.touch(mode=0o600)
            os.utime(marker, (now, now))
        entries = sorted(self._entries())
        total, removed = sum(entry.size for entry in entries), 0
        for entry in entries:
            if now - entry.written <= self._max_age_s and total <= self._max_bytes:
                break
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed += 1
            total -= entry.size
        return removed

    def _entries(self) -> Iterator[_Entry]:
        """Also what killed processes left half written."""
        for path in self._folder.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                yield _Entry(stat.st_mtime, stat.st_size, path)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
