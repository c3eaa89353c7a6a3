"""Evidence for ``sql_result``: the rows that a query gives on each database of a task.

The databases are built inside a sandbox and the query runs there, on a connection that may only read.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from domain import typed_json
from domain.verifiers.sql_result import MAX_ROWS
from workers.collect.frames import Forged, Gone, Line, typed
from workers.sandbox.protocol import Backend, Limits, SandboxSpec, SandboxUnavailable

_DETAIL = 300
_KEYS = {"columns", "rows", "truncated", "error"}


async def collect_sql(
    backend: Backend, *, query: str, scripts: Sequence[str], limits: Limits
) -> dict[str, Any]:
    """See ``domain.verifiers.sql_result`` for the report."""
    talk = _Conversation(query, scripts)
    try:
        result = await backend.run(
            SandboxSpec(limits=limits),
            [*backend.interpreter, "/workspace/sql_agent.py"],
            files=_agent_files(),
            talk=talk,
        )
    except SandboxUnavailable as unavailable:
        return {"status": "unavailable", "results": [], "detail": str(unavailable)[:_DETAIL]}
    ended = "".join(result.stderr.text.strip().splitlines()[-1:])
    return {
        "status": "nonzero" if result.status == "ok" and not talk.complete else result.status,
        "results": talk.results,
        "detail": (talk.trouble or result.detail or ended)[:_DETAIL],
    }


class _Conversation:
    def __init__(self, query: str, scripts: Sequence[str]) -> None:
        self._query = query
        self._scripts = scripts
        self.results: list[dict[str, Any]] = []
        self.trouble = ""

    @property
    def complete(self) -> bool:
        return len(self.results) == len(self._scripts)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        try:
            for script in self._scripts:
                request = {"script": script, "query": self._query, "rows": MAX_ROWS}
                self.results.append(_result(await line.ask(request)))
        except Forged as forged:
            self.trouble = str(forged)
        except Gone as gone:
            self.trouble = str(gone)
            await asyncio.sleep(1.0)  # it is ending: let its own end say how


def _result(frame: Mapping[str, Any]) -> dict[str, Any]:
    if set(frame) != _KEYS or not isinstance(frame["rows"], list) or not isinstance(frame["error"], str):
        raise Forged("a result had no known shape")
    return {**frame, "rows": [typed(row) for row in frame["rows"]], "error": frame["error"][:_DETAIL]}


@lru_cache(maxsize=1)
def _agent_files() -> dict[str, bytes]:
    return {
        "sql_agent.py": Path(__file__).with_name("sql_agent.py").read_bytes(),
        "typed_json.py": Path(typed_json.__file__).read_bytes(),
    }
