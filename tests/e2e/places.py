"""Every place where an installation could keep something, as text to search."""

import base64
import contextlib
import gzip
import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

_TOKEN = re.compile(rb"gAAAAA[\w-]{40,}={0,2}")


def stored(data: Path) -> Iterator[tuple[str, str]]:
    """(place, text) of every value of the database and of every file below the data folder, the raw
    pages of the database among them: what was deleted may still stand there."""
    yield from database_values(data)
    for path in sorted(data.rglob("*")):
        if path.is_file() and data / "static" not in path.parents:
            with contextlib.suppress(FileNotFoundError):  # a message that was just taken
                yield path.relative_to(data).as_posix(), _text(path, path.read_bytes())


def database_values(data: Path) -> Iterator[tuple[str, str]]:
    """(table.column, all its values as one text): few large texts are searched faster than many small."""
    with contextlib.closing(_open(data)) as database:
        for place, values in _columns(database):
            texts = (value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values)
            yield place, "\n".join(texts)


def ciphertexts(data: Path) -> Iterator[tuple[str, str]]:
    """(file, clear text) of every ciphertext that the installation's own key opens, wherever it lies:
    values, free pages, the write-ahead log, the gateway's spool."""
    keys = [Fernet(key) for key in (data / "secrets" / "encryption_keys").read_text().strip().split(",")]
    contents = []
    for path in (*data.glob("flywheel.sqlite3*"), *(data / "spool").glob("*")):
        with contextlib.suppress(FileNotFoundError):
            contents.append((path.name, path.read_bytes()))
    with contextlib.closing(_open(data)) as database:  # a long one is cut into pages in the file
        for place, values in _columns(database):
            contents.append((place, b"\n".join(value for value in values if isinstance(value, bytes))))
    for place, content in contents:
        for token in set(_TOKEN.findall(content)):
            for key in keys:
                with contextlib.suppress(InvalidToken):
                    yield place, key.decrypt(token).decode("utf-8", "replace")


def _columns(database: sqlite3.Connection) -> Iterator[tuple[str, list[Any]]]:
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for column in [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]:
            rows = database.execute(f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
            yield f"{table}.{column}", [row[0] for row in rows]


def holds_anything(folder: Path) -> bool:
    """Whether a file in ``folder`` is not empty, while somebody else takes files away."""
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size:
                return True
    return False


def checkpoint(data: Path) -> None:
    """Move the write-ahead log into the database and empty it, as SQLite does by itself in time."""
    with contextlib.closing(sqlite3.connect(data / "flywheel.sqlite3", timeout=240)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class BrokerWatch:
    """Reads every message that passes through the broker's folders while it runs, as far as it sees them."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "broker"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.seen: dict[str, str] = {}

    def __enter__(self) -> "BrokerWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=240)

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            for path in self._folder.rglob("*.msg"):
                if path.name not in self.seen:
                    with contextlib.suppress(OSError):
                        self.seen[path.name] = _text(path, path.read_bytes())


def _open(data: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{data / 'flywheel.sqlite3'}?mode=ro", uri=True, timeout=240)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


def _text(path: Path, content: bytes) -> str:
    """A file's content readable: packed formats unpacked, a message's body decoded."""
    if content[:4] == b"PAR1":
        import pyarrow.parquet

        return json.dumps(pyarrow.parquet.read_table(path).to_pylist(), default=str, ensure_ascii=False)
    if content[:2] == b"\x1f\x8b":
        return gzip.decompress(content).decode("utf-8", "replace")
    text = content.decode("utf-8", "replace")
    if path.suffix == ".msg":
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text += base64.b64decode(json.loads(content)["body"]).decode("utf-8", "replace")
    return text
