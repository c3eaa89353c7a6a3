"""Encryption at rest and key hashing. Keys rotate: the newest encrypts, all decrypt."""

import hashlib
import hmac
import json
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def encrypt_bytes(value: bytes) -> bytes:
    return _fernet(tuple(settings.ENCRYPTION_KEYS)).encrypt(value)


def decrypt_bytes(token: bytes) -> bytes:
    """Raises ``cryptography.fernet.InvalidToken`` if no configured key fits."""
    return _fernet(tuple(settings.ENCRYPTION_KEYS)).decrypt(bytes(token))


def encrypt_json(value: Any) -> bytes:
    return encrypt_bytes(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())


def decrypt_json(token: bytes) -> Any:
    return json.loads(decrypt_bytes(token))


def key_digest(key: str) -> str:
    """SHA-256 hex digest under which an API key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def keyed_hash(scope: str, value: str) -> str:
    """HMAC-SHA-256 (hex, 32 characters) of ``value``: stable inside this installation, not reversible.

    The oldest encryption key is the secret, so that adding a key keeps every hash.
    """
    secret = settings.ENCRYPTION_KEYS[-1].encode()
    return hmac.digest(secret, f"{scope}\x00{value}".encode(), "sha256").hex()[:32]


__all__ = [
    "InvalidToken",
    "decrypt_bytes",
    "decrypt_json",
    "encrypt_bytes",
    "encrypt_json",
    "key_digest",
    "keyed_hash",
]
