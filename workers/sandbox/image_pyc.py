"""Compiled caches for an unpacked image, so that a cold start does not compile numpy again.

They are no part of the image and its digest: each host derives them from the sources. The image never
changes, so they are of the kind that Python does not check against the source.
"""

import importlib.util
import py_compile
from pathlib import Path

_UNCHECKED = (1).to_bytes(4, "little") + bytes(8)  # flags: hash-based, unchecked; the hash is then unused
_HEADER = 16


def precompile(lib: Path, installed: Path) -> None:
    """Write ``__pycache__`` for every module below ``lib``, a copy of parts of ``installed``; one that
    does not compile is left as it is."""
    for source in sorted(lib.rglob("*.py")):
        cache = Path(importlib.util.cache_from_source(str(source)))
        cache.parent.mkdir(exist_ok=True)
        code = _of_installer(installed / source.relative_to(lib), source.read_bytes())
        if code:
            cache.write_bytes(importlib.util.MAGIC_NUMBER + _UNCHECKED + code)
            continue
        try:
            py_compile.compile(
                str(source),
                str(cache),
                doraise=True,
                quiet=2,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except (py_compile.PyCompileError, ValueError, RecursionError):
            continue


def _of_installer(twin: Path, source: bytes) -> bytes:
    """The code that the installer compiled from the same source on this host, or b""."""
    try:
        held = Path(importlib.util.cache_from_source(str(twin))).read_bytes()
        stat = twin.stat()
        same = twin.read_bytes() == source
    except OSError:
        return b""
    flags, size = held[4:8], int.from_bytes(held[12:16], "little")
    mtime = int.from_bytes(held[8:12], "little")
    fresh = not any(flags) and size == stat.st_size & 0xFFFFFFFF and mtime == int(stat.st_mtime) & 0xFFFFFFFF
    return held[_HEADER:] if same and fresh and held[:4] == importlib.util.MAGIC_NUMBER else b""
