"""Runs inside a sandbox; never imported by a worker. Builds a database in memory from a script of the
task, then runs one query of the answer with an authorizer that lets it read tables and nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_STEPS = 20_000_000  # of SQLite's virtual machine: some seconds
_LARGEST_VALUE = 100_000


def main() -> None:
    import json
    import os
    import sys

    sys.path.insert(0, "/workspace")
    import typed_json  # type: ignore[import-not-found]

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    pending = b""
    while True:
        while b"\n" not in pending:
            chunk = os.read(channel, 65536)
            if not chunk:
                os._exit(0)
            pending += chunk
        line, _, pending = pending.partition(b"\n")
        request = json.loads(line)
        frame = _run(request["script"], request["query"], request["rows"], typed_json)
        answer = json.dumps({**frame, "nonce": request["nonce"]}, allow_nan=False).encode() + b"\n"
        if len(answer) > 512 * 1024:
            frame = {"columns": 0, "rows": [], "truncated": True, "error": ""}
            answer = json.dumps({**frame, "nonce": request["nonce"]}).encode() + b"\n"
        while answer:
            answer = answer[os.write(channel, answer) :]


def _run(script: str, query: str, most: int, typed_json: Any) -> dict[str, Any]:
    import sqlite3

    empty: dict[str, Any] = {"columns": 0, "rows": [], "truncated": False, "error": ""}
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(script)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
    database.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20)
    database.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    steps = [0]

    def tick() -> int:
        steps[0] += 10_000
        return int(steps[0] > _STEPS)

    def authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            own = (first or "").lower().startswith(("sqlite_", "pragma_"))
            return sqlite3.SQLITE_DENY if own else sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _FORBIDDEN:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    database.set_progress_handler(tick, 10_000)
    database.set_authorizer(authorize)
    try:
        cursor = database.execute(query)
        if cursor.description is None:
            return {**empty, "error": "The answer is no query"}
        rows = cursor.fetchmany(most + 1)
        sent = [typed_json.encode(list(row)) for row in rows[:most]]
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        return {**empty, "error": f"{type(error).__name__}: {error}"[:200]}
    return {**empty, "columns": len(cursor.description), "rows": sent, "truncated": len(rows) > most}


_FORBIDDEN = frozenset(
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "random", "randomblob"]
)


if __name__ == "__main__":
    main()
