"""Figures read from a document, and the relations that must hold between them.

The answer is one JSON object. Every figure of the reference is compared by value; then every
relation is a formula over the answer's own figures, over each row of a list where it says ``each``.
Relations alone earn nothing: zeros satisfy most of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown
from domain.verifiers.formula import Formula, FormulaError, Undefined, parse_formula, values_in
from domain.verifiers.numbers import close, parse_number
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    try:
        got = parse_strict_object(answer, fence=params.get("fence", False))
    except NotStrictJson as error:
        reason = str(error)
        return failed(reason, checks=[Check(name="json", role="format", score=0.0, reason=reason)])

    fields = [_field_check(path, got, wanted, params) for path, wanted in task.reference.items()]
    relations = [relation_check(entry, got, params) for entry in params.get("relations", [])]
    checks = [Check(name="json", role="format", score=1.0), *fields, *relations]
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    right = sum(1 for check in fields if check.score == 1.0)
    kept = sum(1 for check in relations if check.score == 1.0) if right else 0
    return failed(*reasons, score=(right + kept) / (len(fields) + len(relations)), checks=checks)


def _field_check(path: str, got: Mapping[str, Any], wanted: Any, params: Mapping[str, Any]) -> Check:
    reason = _deviation(path, got, wanted, params)
    if reason and (place := params.get("sources", {}).get(path)):
        reason = f"{reason} Source: {shown(place, 160)}."
    return Check(name=path, score=0.0 if reason else 1.0, reason=reason)


def _deviation(path: str, got: Mapping[str, Any], wanted: Any, params: Mapping[str, Any]) -> str:
    value: Any = got
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return f"Figure {path!r} is missing."
        value = value[key]
    if wanted is None or value is None:
        return "" if wanted is value else f"Figure {path!r} is wrong: {_text(value)}."
    decimal = params.get("decimal", "auto")
    number, expected = parse_number(value, decimal), parse_number(wanted, decimal)
    if number is None:
        return f"Figure {path!r} is no number: {_text(value)}."
    assert expected is not None  # checked with the specification
    same = close(number, expected, params.get("tolerance", 0.005), params.get("relative", 0.0))
    return "" if same else f"Figure {path!r} is wrong: {_text(value)}."


def relation_check(entry: Mapping[str, Any], got: Mapping[str, Any], params: Mapping[str, Any]) -> Check:
    """One relation over the figures in ``got``, on its own. Raises ``FormulaError``."""
    formula = parse_formula(entry["formula"])
    name = entry.get("name") or entry["formula"]
    reason = ""
    for number, row in _rows(entry.get("each"), got):
        broken = _broken(formula, row, entry, params)
        if broken:
            where = f" in row {number} of {entry['each']}" if entry.get("each") else ""
            reason = f"Relation {name!r} ({formula.text}) does not hold{where}: {broken}."
            break
    return Check(name=f"relation {name}", score=0.0 if reason else 1.0, reason=reason)


def _rows(each: str | None, got: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    """The rows of the list called ``each``; the whole answer without one. No list is one bad row."""
    if not each:
        yield 0, got
        return
    rows = got.get(each)
    yield from enumerate(rows if isinstance(rows, list) and rows else [None], start=1)


def _broken(formula: Formula, row: Any, entry: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    values = values_in(row, params.get("decimal", "auto"))
    tolerance = entry.get("tolerance", params.get("tolerance", 0.005))
    relative = entry.get("relative", params.get("relative", 0.0))
    try:
        if formula.holds(values, tolerance=tolerance, relative=relative):
            return ""
        left, right = formula.sides(values)
    except Undefined as error:
        return str(error).rstrip(".")
    return f"{_short(left)} against {_short(right)}"


def _short(value: Any) -> str:
    return f"{round(value, 6).normalize():f}" if abs(value) < 10**15 else f"{value:.6e}"


def _text(value: Any) -> str:
    return shown(value if isinstance(value, str | int | list | dict | None) else str(value))


def _check(params: Mapping[str, Any], reference: Any) -> None:
    decimal = params.get("decimal", "auto")
    numbers = {path: parse_number(value, decimal) for path, value in reference.items()}
    for path, value in reference.items():
        if value is not None and numbers[path] is None:
            raise InvalidVerifier(f"Verifier 'accounting', reference: {path!r} is {shown(value)}, no number.")
    if not any(numbers.values()):
        raise InvalidVerifier("Verifier 'accounting', reference: an answer of zeros would pass.")
    nested: dict[str, Any] = {}
    for path, value in reference.items():
        _put(nested, path.split("."), value)
    for entry in params.get("relations", []):
        _check_relation(entry, nested, set(reference), params)


def check_params(params: Mapping[str, Any]) -> None:
    for entry in params.get("relations", []):
        _formula_of(entry)


def _formula_of(entry: Mapping[str, Any]) -> Formula:
    try:
        formula = parse_formula(entry["formula"])
    except FormulaError as error:
        raise InvalidVerifier(f"Verifier 'accounting', relation {entry['formula']!r}: {error}") from error
    if not formula.comparison:
        raise InvalidVerifier(f"Verifier 'accounting': {entry['formula']!r} compares nothing; write ==.")
    return formula


def _check_relation(
    entry: Mapping[str, Any], nested: Mapping[str, Any], known: set[str], params: Mapping[str, Any]
) -> None:
    formula = _formula_of(entry)
    if entry.get("each") or not formula.names <= known:
        return  # rows and further figures are the answer's own
    if broken := _broken(formula, nested, entry, params):
        raise InvalidVerifier(f"The reference itself breaks relation {entry['formula']!r}: {broken}.")


def _put(nested: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = nested.setdefault(key, {})
        if not isinstance(inner, dict):
            raise InvalidVerifier(f"Verifier 'accounting', reference: {key!r} is both a figure and a group.")
        nested = inner
    nested[keys[-1]] = value


KIND = VerifierKind(
    name="accounting",
    title="Accounting relations",
    description=(
        "The answer is a JSON object of figures. Each is compared by value, and every relation between them "
        "must hold within its tolerance. The deviating figure is named with the line it comes from."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "relations": {
                "type": "array",
                "maxItems": 40,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 80},
                        "formula": {"type": "string", "minLength": 1, "maxLength": 500},
                        "each": {"type": "string", "minLength": 1},
                        "tolerance": {"type": "number", "minimum": 0},
                        "relative": {"type": "number", "minimum": 0, "maximum": 1},
                    },
                    "required": ["formula"],
                    "additionalProperties": False,
                },
            },
            "sources": {"type": "object", "additionalProperties": {"type": "string"}},
            "tolerance": {"type": "number", "minimum": 0},
            "relative": {"type": "number", "minimum": 0, "maximum": 1},
            "decimal": {"enum": ["auto", ".", ","]},
            "fence": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": ["number", "string", "null"]},
    },
    check=_check,
    check_params=check_params,
)
