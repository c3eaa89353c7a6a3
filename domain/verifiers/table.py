"""The answer is a table with the right rows, found by their key columns.

The order of rows counts only where it is asked for. Every cell earns its share, rows that were
not asked for widen the denominator, and each wrong cell is named with its row and its source.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown
from domain.verifiers.dates import parse_date
from domain.verifiers.exact import normalized
from domain.verifiers.numbers import close, parse_number
from domain.verifiers.table_text import NotATable, Row, read_csv_rows, read_json_rows, read_markdown_rows

_MAX_REASONS = 12


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    try:
        got = _read(answer, params)
    except NotATable as error:
        reason = str(error)
        return failed(reason, checks=[Check(name="table", role="format", score=0.0, reason=reason)])

    wanted: list[Row] = task.reference
    if len(got) > 2 * len(wanted) + 20:  # listing everything is no answer, and matching it takes long
        reason = f"The table has {len(got)} rows, far more than were asked for."
        return failed(reason, checks=[Check(name="no_extra_rows", role="guard", score=0.0, reason=reason)])
    pairs = _matched(wanted, got, params)
    checks = [Check(name="table", role="format", score=1.0)]
    cells = right = 0
    for row, index in zip(wanted, pairs, strict=True):
        wrong = _wrong_cells(row, got[index] if index is not None else None, params)
        cells += len(params["columns"])
        right += 0 if index is None else len(params["columns"]) - len(wrong)
        reason = _row_reason(row, wrong, got[index] if index is not None else None, params)
        checks.append(Check(name=f"row {_label(row, params)}", score=0.0 if reason else 1.0, reason=reason))
    extra = [index for index in range(len(got)) if index not in pairs]
    cells += len(params["columns"]) * len(extra)
    if extra:
        names = ", ".join(_label(got[index], params) for index in extra[:5])
        reason = f"{len(extra)} rows that do not belong: {names}."
        checks.append(Check(name="no_extra_rows", role="guard", score=0.0, reason=reason))
    elif params.get("ordered", False) and None not in pairs and pairs != sorted(pairs, key=_place):
        checks.append(Check(name="order", score=0.0, reason="The rows stand in another order."))
    columns = {name for row in got for name in row if name not in params["columns"]}
    if columns:
        reason = (
            f"Columns that were not asked for: {', '.join(shown(name, 40) for name in sorted(columns)[:5])}."
        )
        checks.append(Check(name="no_extra_columns", role="guard", score=0.0, reason=reason))

    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    return failed(*reasons[:_MAX_REASONS], score=right / cells if cells else 0.0, checks=checks)


def _place(index: int | None) -> int:
    return -1 if index is None else index


def _read(answer: str, params: Mapping[str, Any]) -> list[Row]:
    form = params.get("format", "json")
    if form == "markdown":
        return read_markdown_rows(answer)
    if form == "csv":
        return read_csv_rows(answer)
    return read_json_rows(answer, params.get("path", ""), fence=params.get("fence", False))


def _matched(wanted: Sequence[Row], got: Sequence[Row], params: Mapping[str, Any]) -> list[int | None]:
    """For each wanted row the answer's row with the same key; among several, the one most alike.

    What is alike in every cell is matched first, so that a near miss never takes another's row.
    """
    free: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(got):
        free.setdefault(_key(row, params), []).append(index)
    found: list[int | None] = [None] * len(wanted)
    for allowed in range(len(params["columns"]) + 1):
        for place, row in enumerate(wanted):
            rows = free.get(_key(row, params), []) if found[place] is None else []
            fit = next(
                (index for index in rows if len(_wrong_cells(row, got[index], params)) <= allowed), None
            )
            if fit is not None:
                rows.remove(fit)
                found[place] = fit
    return found


def _key(row: Row, params: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_canonical(row.get(name), params["columns"][name], params) for name in params["key"])


def _canonical(value: Any, kind: str, params: Mapping[str, Any]) -> str:
    if kind == "number":
        number = parse_number(value, params.get("decimal", "auto"))
        return f"{number.normalize():f}" if number is not None and abs(number) < 10**60 else f"?{value!r}"
    if kind == "date":
        day = parse_date(value, params.get("date_order", "unknown"))
        return day.isoformat() if day else f"?{value!r}"
    return normalized(value) if isinstance(value, str) else f"?{value!r}"


def _wrong_cells(wanted: Row, got: Row | None, params: Mapping[str, Any]) -> list[str]:
    if got is None:
        return list(params["columns"])
    return [
        name
        for name, kind in params["columns"].items()
        if not (name in got and _same(got[name], wanted[name], kind, params))
    ]


def _same(got: Any, wanted: Any, kind: str, params: Mapping[str, Any]) -> bool:
    if wanted is None or got is None:
        return wanted is got or (wanted is None and got == "")
    if kind == "number":
        decimal = params.get("decimal", "auto")
        number, expected = parse_number(got, decimal), parse_number(wanted, decimal)
        if number is None or expected is None:
            return False
        return close(number, expected, params.get("tolerance", 0.005), params.get("relative", 0.0))
    if kind == "text" and not params.get("ignore_case", True):
        return isinstance(got, str) and " ".join(got.split()) == " ".join(wanted.split())
    same = _canonical(got, kind, params)
    return not same.startswith("?") and same == _canonical(wanted, kind, params)


def _row_reason(wanted: Row, wrong: Sequence[str], got: Row | None, params: Mapping[str, Any]) -> str:
    label = _label(wanted, params)
    if got is None:
        return f"Row {label} is missing.{_source(label, params)}"
    if not wrong:
        return ""
    cells = ", ".join(f"{name} is {_text(got[name]) if name in got else 'missing'}" for name in wrong)
    return f"Row {label}: {cells}.{_source(label, params)}"


def _source(label: str, params: Mapping[str, Any]) -> str:
    place = params.get("sources", {}).get(label)
    return f" Source: {shown(place, 160)}." if place else ""


def _label(row: Row, params: Mapping[str, Any]) -> str:
    """The key as a person reads it; ``sources`` are found by it."""
    return " / ".join(_text(row.get(name)).strip("'\"") for name in params["key"])


def _text(value: Any) -> str:
    return shown(str(value) if isinstance(value, Decimal) else value, 60)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    columns = params["columns"]
    for name in params["key"]:
        if name not in columns:
            raise InvalidVerifier(f"Verifier 'table': the key column {name!r} is not among the columns.")
    if "path" in params and params.get("format", "json") != "json":
        raise InvalidVerifier("Verifier 'table': a path leads into JSON only.")
    for number, row in enumerate(reference, start=1):
        if set(row) != set(columns):
            names = ", ".join(sorted(set(row) ^ set(columns)))
            raise InvalidVerifier(
                f"Verifier 'table', reference: row {number} and the columns differ in {names}."
            )
        for name, kind in columns.items():
            if row[name] is not None and _canonical(row[name], kind, params).startswith("?"):
                raise InvalidVerifier(
                    f"Verifier 'table', reference: row {number}, {name!r} is {shown(row[name])}, no {kind}."
                )


KIND = VerifierKind(
    name="table",
    title="Table",
    description=(
        "The answer is a table (JSON, Markdown or CSV). Rows are found by their key columns in any order, "
        "cells are compared by value, and each wrong, missing or additional one is named."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "key": {"type": "array", "minItems": 1, "maxItems": 6, "items": {"type": "string"}},
            "columns": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 30,
                "additionalProperties": {"enum": ["text", "number", "date"]},
            },
            "format": {"enum": ["json", "markdown", "csv"]},
            "path": {"type": "string", "minLength": 1},
            "ordered": {"type": "boolean"},
            "ignore_case": {"type": "boolean"},
            "fence": {"type": "boolean"},
            "tolerance": {"type": "number", "minimum": 0},
            "relative": {"type": "number", "minimum": 0, "maximum": 1},
            "decimal": {"enum": ["auto", ".", ","]},
            "date_order": {"enum": ["unknown", "dmy", "mdy"]},
            "sources": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["key", "columns"],
        "additionalProperties": False,
    },
    reference_schema={"type": "array", "maxItems": 500, "items": {"type": "object"}},
    check=_check,
)
