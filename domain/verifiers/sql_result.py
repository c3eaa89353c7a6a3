"""The answer is one SELECT; its rows must be those of the reference query, on every database.

A sandbox builds each database from the task's script and runs the answer with a connection that may
only read. The report under ``sql``: ``{"status", "results": [{"columns", "rows": typed JSON, "error",
"truncated"}], "detail"}``, one result per database in the reference's order. Expected rows never
enter the sandbox. Numbers agree by value (SQL sums do not promise a type); rows are compared as a
bag, in order only where the task asks for it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from domain import typed_json
from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.python_tests import DIED

EVIDENCE = "sql"
MAX_ROWS = 2000
_FENCE = re.compile(r"```(?:sql|sqlite)?[ \t]*\r?\n(?P<body>.*?)```", re.DOTALL | re.IGNORECASE)


def query_text(answer: str) -> str:
    """The query in ``answer``: the content of its one code fence, or else the whole text."""
    blocks = _FENCE.findall(answer)
    return (blocks[0] if len(blocks) == 1 else answer).strip()


def sandbox_databases(task: TaskSpec) -> list[str]:
    """The scripts that make the databases; no expected row."""
    return [database["script"] for database in task.reference["databases"]]


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The query was not run: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))[:200]
    if status != "ok" and status not in DIED:
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail}".rstrip())
    databases, results = task.reference["databases"], report.get("results")
    finished = Check(
        name="finished", role="guard", score=float(status == "ok"), reason=DIED.get(status, "")[:400]
    )
    if status != "ok" or not isinstance(results, list) or len(results) != len(databases):
        return failed(f"{DIED.get(status, 'A result is missing.')} {detail}".rstrip(), checks=[finished])
    ordered = task.verifier.params.get("ordered", False)
    checks = [
        _database_check(database, got, ordered) for database, got in zip(databases, results, strict=True)
    ]
    reasons = [check.reason for check in checks if check.reason]
    return failed(*reasons, checks=[finished, *checks]) if reasons else passed([finished, *checks])


def _database_check(database: Mapping[str, Any], got: Any, ordered: bool) -> Check:
    reason = _deviation(database["rows"], got, ordered)
    name = str(database.get("name", "database"))
    return Check(name=name, score=0.0 if reason else 1.0, reason=f"On {name}: {reason}" if reason else "")


def _deviation(expected: Sequence[Sequence[Any]], got: Any, ordered: bool) -> str:
    if not isinstance(got, Mapping):
        return "no result."
    if got.get("error"):
        return f"{str(got['error'])[:200]}."
    rows = got.get("rows")
    if got.get("truncated") or not isinstance(rows, list):
        return f"more than {MAX_ROWS} rows."
    try:
        found = [_row(typed_json.decode(row)) for row in rows]
    except (ValueError, TypeError):
        return "a malformed row."
    wanted = [_row(row) for row in expected]
    widths = {len(row) for row in found} - {len(row) for row in wanted}
    if widths:
        return f"{min(widths)} columns where {len(wanted[0]) if wanted else 0} were asked for."
    if len(found) != len(wanted):
        return f"{len(found)} rows instead of {len(wanted)}."
    if Counter(found) != Counter(wanted):
        odd = next(iter(Counter(found) - Counter(wanted)))
        return f"the row {shown(tuple(value for _, value in odd))} is wrong."
    return "the rows are in the wrong order." if ordered and found != wanted else ""


def _row(row: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(row, list | tuple):
        raise ValueError("a row is a list")
    return tuple(map(_value, row))


def _value(value: Any) -> tuple[str, Any]:
    """A hashable stand-in; numbers to nine digits, so that sums in another order agree."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (type(value).__name__, value)
    if isinstance(value, int) and abs(value) < 10**9:
        return ("number", float(value))
    return ("number", float(f"{value:.9g}"))


def _check(params: Mapping[str, Any], reference: Any) -> None:
    if all(not database["rows"] for database in reference["databases"]):
        raise InvalidVerifier("Verifier 'sql_result', reference: at least one database must give rows.")


KIND = VerifierKind(
    name="sql_result",
    title="SQL result",
    description=(
        "The answer is one SELECT. It is run on several SQLite databases, hidden ones among them, by a "
        "connection that can only read; its rows must equal the reference query's on each."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {"ordered": {"type": "boolean"}},
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "databases": {
                "type": "array",
                "minItems": 1,
                "maxItems": 8,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1},
                        "script": {"type": "string", "minLength": 1},
                        "rows": {"type": "array", "maxItems": MAX_ROWS, "items": {"type": "array"}},
                    },
                    "required": ["script", "rows"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["databases"],
        "additionalProperties": False,
    },
    check=_check,
)
