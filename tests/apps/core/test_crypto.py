import pytest
from cryptography.fernet import Fernet

from apps.core import crypto


def test_keys_rotate_newest_encrypts_all_decrypt(settings: pytest.FixtureRequest) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    token, hashed = crypto.encrypt_json({"a": "ü"}), crypto.keyed_hash("unit", "anna")

    settings.ENCRYPTION_KEYS = [new, old]

    assert crypto.decrypt_json(token) == {"a": "ü"}
    assert crypto.keyed_hash("unit", "anna") == hashed
    settings.ENCRYPTION_KEYS = [new]
    with pytest.raises(crypto.InvalidToken):
        crypto.decrypt_json(token)


def test_a_hash_says_nothing_without_the_scope_and_key() -> None:
    assert crypto.keyed_hash("a", "x") != crypto.keyed_hash("b", "x")
