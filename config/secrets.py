"""Secrets that an embedded installation generates for itself, once."""

import os
import secrets
from pathlib import Path


def read_or_create(path: Path, kind: str) -> str:
    """Return the secret stored at ``path``, creating it (mode 0600) on the first call.

    ``kind`` is ``token`` (URL-safe, 50 bytes) or ``fernet`` (32 bytes, base64). Creation is
    exclusive, so that processes which start together agree on one value.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        value = secrets.token_urlsafe(50) if kind == "token" else _fernet_key()
        partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(value)
        try:
            os.link(partial, path)  # fails if another process was first
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    return path.read_text().strip()


def _fernet_key() -> str:
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()
