"""Small objects that come and go beside the artifacts: found by name, overwritten, removed.

For what one process leaves behind for another that may have to go on with its work. Nothing here is
verified or kept for good; a reader takes what it finds as a hint.
"""

import contextlib
import os
import uuid
from datetime import UTC, datetime
from typing import BinaryIO

from artifacts.store import ArtifactStore, checked_name


class Scratch:
    """Bytes by name (words, digits, ``._-`` and ``/``) in the scratch area of ``store``."""

    def __init__(self, store: ArtifactStore) -> None:
        self._fs, root = store.place()
        self._root = f"{root}/scratch"

    @property
    def is_local(self) -> bool:
        """Whether these are files of this machine, so that a write is a matter of microseconds."""
        protocol = self._fs.protocol
        return "file" in ([protocol] if isinstance(protocol, str) else protocol)

    def begin(self, name: str) -> BinaryIO:
        """A new file of this machine to be added to, unbuffered: what was written outlives the process, and
        a reader may find its last line torn. Only where ``is_local``."""
        path = self._path(name)
        os.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        return open(path, "xb", buffering=0)  # type: ignore[return-value]

    def put(self, name: str, data: bytes) -> None:
        """Store ``data`` whole or not at all; the last writer wins."""
        path = self._path(name)
        self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        self._fs.pipe_file(partial, data)
        self._fs.mv(partial, path)

    def get(self, name: str) -> bytes | None:
        """What lies there; None when nothing does (any more)."""
        try:
            data: bytes = self._fs.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        return data

    def names(self, folder: str) -> list[str]:
        """Names below ``folder``, sorted."""
        start = len(self._root) + 1
        try:
            found = self._fs.find(self._path(folder))
        except FileNotFoundError:
            return []
        return sorted(path[start:] for path in found if not path.endswith(".partial"))

    def remove(self, name: str) -> None:
        """Harmless where nothing lies."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def age_s(self, name: str, now: datetime) -> float | None:
        """Seconds since it was written; None when it is gone or the file system does not know."""
        try:
            written: datetime = self._fs.modified(self._path(name))
        except (FileNotFoundError, NotImplementedError):
            return None
        return (now - written.replace(tzinfo=written.tzinfo or UTC)).total_seconds()

    def _path(self, name: str) -> str:
        return f"{self._root}/{checked_name(name)}"
