"""Environment images: what a sandbox holds besides Python's standard library, at ``/opt/image``.

An image is declared (``images/<name>.toml``), built without a network on first use, kept as an
artifact (``images/<name>`` in the store points at its latest version) and unpacked once per host.
A host that lacks a build takes another host's from the store.
"""

import dataclasses
import fcntl
import io
import json
import os
import shutil
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from artifacts.store import ArtifactMissing, ArtifactStore, get_store
from workers.sandbox.image_build import archive, files_digest, image_files
from workers.sandbox.image_list import ImageList, abi, image_list, image_names
from workers.sandbox.image_pyc import precompile
from workers.sandbox.protocol import SandboxUnavailable

__all__ = ["INSIDE", "Image", "image_named", "image_names"]

INSIDE = "/opt/image"
_ROOTS_CACHE = Path("/var/cache/flywheel/images")


@dataclass(frozen=True)
class Image:
    """One version of an image. ``digest`` names its content; ``root`` is where it lies on this host,
    with ``lib`` for Python's path and ``bin`` for PATH; ``archive`` is its tar in the store."""

    name: str
    digest: str
    root: Path
    packages: tuple[str, ...]
    platform: str
    archive: str

    def environment(self, inside: str = INSIDE) -> dict[str, str]:
        """What a program needs to find the image mounted at ``inside``."""
        return {"PYTHONPATH": f"{inside}/lib", "PATH": f"{inside}/bin"}


def image_named(name: str) -> Image:
    """The image ``name``, built or fetched if this host lacks it (seconds; other processes wait).

    Raises ``SandboxUnavailable`` with reason and fix for an unknown name, a package that is not
    installed, or a folder that cannot be written.
    """
    return _image_named(name, _cache_folder())


@lru_cache(maxsize=64)
def _image_named(name: str, cache: Path) -> Image:
    return image_build(image_list(name), cache=cache, store=get_store())


def image_build(declared: ImageList, *, cache: Path, store: ArtifactStore) -> Image:
    """``image_named`` for any list, cache folder and store."""
    try:
        cache.mkdir(parents=True, exist_ok=True, mode=0o755)
        if os.statvfs(cache).f_flag & os.ST_NOEXEC:
            raise SandboxUnavailable(
                f"{cache} lies on a file system from which nothing may be run (noexec).",
                "Set FLYWHEEL_DATA to a folder elsewhere.",
            )
        with _locked(cache / f".{declared.key}.lock"):
            return (
                _local(declared, cache, store)
                or _fetched(declared, cache, store)
                or _built(declared, cache, store)
            )
    except OSError as error:
        raise SandboxUnavailable(
            f"The image {declared.name!r} could not be built ({error}).",
            f"Make {cache} writable and see that its disk has room.",
        ) from error


def _local(declared: ImageList, cache: Path, store: ArtifactStore) -> Image | None:
    path = cache / f"{declared.key}.json"
    if not path.is_file():
        return None
    image = _image(json.loads(path.read_text()), cache)
    # A store that does not know the image gets it now: it shall hold all that runs.
    return image if image.root.is_dir() and store.exists(image.archive) else None


def _fetched(declared: ImageList, cache: Path, store: ArtifactStore) -> Image | None:
    """Another host's build of the same list, if the store has one."""
    record = _latest(declared, store)
    while record is not None and record["key"] != declared.key:
        record = _record(store, record["previous"])
    if record is None:
        return None
    try:
        data = store.get(record["archive"])
    except ArtifactMissing:
        return None
    image = _image(record, cache)
    _unpack(data, image.root)
    _remember(record, cache)
    return image


def _built(declared: ImageList, cache: Path, store: ArtifactStore) -> Image:
    files = image_files(declared)
    data = archive(files)
    latest = store.ref_get(f"images/{declared.name}")
    record = {
        "name": declared.name,
        "key": declared.key,
        "digest": files_digest(files),
        "archive": store.put(data),
        "packages": list(declared.packages),
        "platform": abi(),
        "previous": latest or "",
    }
    image = _image(record, cache)
    _unpack(data, image.root)
    _remember(record, cache)
    store.ref_set(f"images/{declared.name}", store.put_json(record))
    return image


def _latest(declared: ImageList, store: ArtifactStore) -> dict[str, Any] | None:
    return _record(store, store.ref_get(f"images/{declared.name}") or "")


def _record(store: ArtifactStore, digest: str) -> dict[str, Any] | None:
    if not digest:
        return None
    try:
        record: dict[str, Any] = store.get_json(digest)
    except ArtifactMissing:
        return None
    return record


def _image(record: dict[str, Any], cache: Path) -> Image:
    kept = {field.name: record[field.name] for field in dataclasses.fields(Image) if field.name in record}
    return Image(**{**kept, "packages": tuple(record["packages"])}, root=cache / record["digest"])


def _remember(record: dict[str, Any], cache: Path) -> None:
    partial = cache / f".{record['key']}.partial"
    partial.write_text(json.dumps(record, sort_keys=True))
    partial.replace(cache / f"{record['key']}.json")


def _unpack(data: bytes, root: Path) -> None:
    """Write the tar to ``root`` as a whole or not at all; readable by every user, written by none."""
    if root.is_dir():
        return
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=root.parent))
    try:
        for folder in ("lib", "bin"):
            (partial / folder).mkdir()
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(partial, filter="data")
        precompile(partial / "lib", Path(sysconfig.get_paths()["purelib"]))
        for folder, _, _ in os.walk(partial):
            os.chmod(folder, 0o755)
        try:
            partial.rename(root)
        except OSError:
            if not root.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go when the process ends."""
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _cache_folder() -> Path:
    """A worker that runs as root starts sandboxes as other users, who cannot enter its data folder."""
    if os.geteuid() == 0:
        return _ROOTS_CACHE
    return Path(os.environ.get("FLYWHEEL_DATA") or "var").resolve() / "images"
