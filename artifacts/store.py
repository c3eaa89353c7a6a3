"""Content-addressed storage: ``digest = sha256(bytes)``, written once, verified on read.

Works on any fsspec URL (``file://``, ``s3://``, ``memory://``). A directory is stored as a
manifest (JSON, sorted) that names the digest of each file. Leaves out retention.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

import fsspec

from artifacts.jsontext import json_bytes

_MANIFEST_FORMAT = "flywheel-tree-1"
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


class ArtifactMissing(LookupError):
    """No artifact with this digest, or its bytes no longer match it."""


class ArtifactStore:
    """Bytes by digest below one root URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs, self._root = fsspec.core.url_to_fs(url)

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its sha256 hex digest. Storing twice is harmless."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if self._fs.exists(path):
            return digest
        self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        with self._fs.open(partial, "wb") as stream:
            stream.write(data)
            stream.flush()
            with contextlib.suppress(io.UnsupportedOperation, AttributeError):  # no file of this system
                os.fsync(stream.fileno())
        self._fs.mv(partial, path)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of ``digest``; raises ``ArtifactMissing`` if absent or damaged."""
        try:
            data: bytes = self._fs.cat_file(self._path(digest))
        except FileNotFoundError:
            raise ArtifactMissing(f"no artifact {digest}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ArtifactMissing(f"artifact {digest} is damaged")
        return data

    def open(self, digest: str) -> IO[bytes]:
        """Open for reading without loading it all (not verified)."""
        try:
            stream: IO[bytes] = self._fs.open(self._path(digest), "rb")
        except FileNotFoundError:
            raise ArtifactMissing(f"no artifact {digest}") from None
        return stream

    def exists(self, digest: str) -> bool:
        return bool(self._fs.exists(self._path(digest)))

    def put_json(self, value: Any) -> str:
        return self.put(json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())

    def get_json(self, digest: str) -> Any:
        return json.loads(self.get(digest))

    def put_jsonl(self, rows: Iterable[Any]) -> str:
        return self.put(b"".join(json_bytes(row, sort_keys=True) + b"\n" for row in rows))

    def iter_jsonl(self, digest: str) -> Iterator[Any]:
        # Split on "\n" alone: str.splitlines would also cut at U+2028 inside a string.
        for line in self.get(digest).split(b"\n"):
            if line:
                yield json.loads(line)

    def put_tree(self, folder: str | Path) -> str:
        """Store every regular file below ``folder`` and return the manifest's digest."""
        base = Path(folder)
        files = sorted(path for path in base.rglob("*") if path.is_file() and not path.is_symlink())
        entries = {path.relative_to(base).as_posix(): self.put(path.read_bytes()) for path in files}
        return self.put_json({"format": _MANIFEST_FORMAT, "files": entries})

    def materialize(self, digest: str, folder: str | Path) -> Path:
        """Write the tree ``digest`` to ``folder`` atomically; an existing folder is kept."""
        target = Path(folder)
        if target.is_dir():
            return target
        manifest = self.get_json(digest)
        if manifest.get("format") != _MANIFEST_FORMAT:
            raise ArtifactMissing(f"artifact {digest} is not a tree")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        for name, file_digest in manifest["files"].items():
            pure = PurePosixPath(name)
            if pure.is_absolute() or ".." in pure.parts:
                raise ArtifactMissing(f"artifact {digest} names a path outside its tree")
            path = partial / pure
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(file_digest))
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(partial, ignore_errors=True)
            if not target.is_dir():
                raise
        return target

    def ref_set(self, name: str, digest: str) -> None:
        """Let ``name`` (words, digits, ``._-`` and ``/``) point at ``digest`` from now on, atomically;
        the last writer wins. For what is looked up by name: the last record of a check, an image."""
        path = self._ref_path(name)
        self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        self._fs.pipe_file(partial, digest.encode())
        self._fs.mv(partial, path)

    def ref_get(self, name: str) -> str | None:
        """What ``name`` points at; None when it was never set."""
        try:
            digest: str = self._fs.cat_file(self._ref_path(name)).decode()
        except FileNotFoundError:
            return None
        return digest

    def refs(self, prefix: str) -> dict[str, str]:
        """All names below ``prefix`` (a folder of names) with their digests, in one listing."""
        folder = self._ref_path(prefix)
        try:
            paths = [path for path in self._fs.find(folder) if not path.endswith(".partial")]
        except FileNotFoundError:
            return {}
        start = len(self._ref_path("x")) - 1
        found = self._fs.cat(paths, on_error="omit") if paths else {}
        return {path[start:]: found[path].decode() for path in sorted(found)}

    def place(self) -> tuple[Any, str]:
        """The fsspec file system and the root path, for the other areas of this package."""
        return self._fs, self._root

    def _ref_path(self, name: str) -> str:
        return f"{self._root}/refs/{checked_name(name)}"

    def _path(self, digest: str) -> str:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ArtifactMissing(f"not a digest: {digest[:80]!r}")
        return f"{self._root}/{digest[:2]}/{digest}"


def checked_name(name: str) -> str:
    """``name`` if it stays below its folder; raises ValueError otherwise."""
    if not _REF.fullmatch(name) or ".." in name:
        raise ValueError(f"not a name for a reference: {name!r}")
    return name


@lru_cache(maxsize=8)
def _store(url: str) -> ArtifactStore:
    return ArtifactStore(url)


def get_store() -> ArtifactStore:
    """The store named by the environment variable ``FLYWHEEL_ARTIFACTS`` (default ``var/artifacts``)."""
    return _store(os.environ.get("FLYWHEEL_ARTIFACTS") or f"file://{Path('var/artifacts').resolve()}")
