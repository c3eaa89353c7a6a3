"""The answer is one JSON object whose fields have the right values."""

import unicodedata
from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown
from domain.verifiers.dates import parse_date
from domain.verifiers.numbers import close, parse_number
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    try:
        got = parse_strict_object(answer, fence=params.get("fence", False))
    except NotStrictJson as error:
        reason = str(error)
        return failed(reason, checks=[Check(name="json", role="format", score=0.0, reason=reason)])

    checks = [Check(name="json", role="format", score=1.0)]
    for name, field_type in params["fields"].items():
        reason = _deviation(name, field_type, got, task.reference[name], params)
        if reason and (place := params.get("sources", {}).get(name)):
            reason = f"{reason} Source: {shown(place, 160)}."
        checks.append(Check(name=name, score=0.0 if reason else 1.0, reason=reason))
    extra = [name for name in got if name not in params["fields"]]
    if extra:
        reason = f"Fields that were not asked for: {', '.join(shown(name, 40) for name in extra[:5])}."
        checks.append(Check(name="no_extra_fields", role="guard", score=0.0, reason=reason))

    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    right = sum(1 for check in checks if check.role == "terminal" and check.score == 1.0)
    # Extra fields widen the denominator, so that listing everything never pays.
    return failed(*reasons, score=right / (len(params["fields"]) + len(extra)), checks=checks)


def _deviation(
    name: str, field_type: str, got: Mapping[str, Any], expected: Any, params: Mapping[str, Any]
) -> str:
    """Why field ``name`` is wrong, or an empty text."""
    if name not in got:
        return f"Field {name!r} is missing."
    value = got[name]
    if expected is None:
        return "" if value is None else f"Field {name!r} should be null, not {shown(_plain(value))}."
    if value is None:
        return f"Field {name!r} is null."
    if _same(field_type, value, expected, params):
        return ""
    kind = "" if _readable(field_type, value, params) else f", which is not a {field_type}"
    return f"Field {name!r} is wrong: {shown(_plain(value))}{kind}."


def _same(field_type: str, value: Any, expected: Any, params: Mapping[str, Any]) -> bool:
    if field_type == "text":
        fold = params.get("ignore_case", False)
        return isinstance(value, str) and _text(value, fold) == _text(expected, fold)
    if field_type == "boolean":
        return isinstance(value, bool) and value is expected
    if field_type == "date":
        order = params.get("date_order", "unknown")
        found = parse_date(value, order)
        return found is not None and found == parse_date(expected, order)
    decimal = params.get("decimal", "auto")
    number, wanted = parse_number(value, decimal), parse_number(expected, decimal)
    if number is None or wanted is None:
        return False
    return close(number, wanted, params.get("tolerance", 0.005), params.get("relative", 0.0))


def _readable(field_type: str, value: Any, params: Mapping[str, Any]) -> bool:
    if field_type == "text":
        return isinstance(value, str)
    if field_type == "boolean":
        return isinstance(value, bool)
    if field_type == "date":
        return parse_date(value, params.get("date_order", "unknown")) is not None
    return parse_number(value, params.get("decimal", "auto")) is not None


def _text(value: str, fold: bool) -> str:
    text = " ".join(unicodedata.normalize("NFKC", value).split())
    return text.casefold() if fold else text


def _plain(value: Any) -> Any:
    """A value for a message: decimals as text, so that no class name is shown."""
    return value if isinstance(value, str | int | list | dict | None) else str(value)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    fields = params["fields"]
    if set(reference) != set(fields):
        names = ", ".join(sorted(set(reference) ^ set(fields)))
        raise InvalidVerifier(f"Verifier 'json_fields': fields and reference differ in {names}.")
    for name, field_type in fields.items():
        value = reference[name]
        if value is not None and not _readable(field_type, value, params):
            raise InvalidVerifier(
                f"Verifier 'json_fields', reference: field {name!r} is {shown(value)}, not a {field_type}."
            )


KIND = VerifierKind(
    name="json_fields",
    title="JSON fields",
    description=(
        "The answer is one strict JSON object with exactly the named fields. Numbers and dates are "
        "compared by value, text by its words; each wrong field is named, with its source where one is given."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "fields": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"enum": ["text", "number", "date", "boolean"]},
            },
            "sources": {"type": "object", "additionalProperties": {"type": "string"}},
            "fence": {"type": "boolean"},
            "ignore_case": {"type": "boolean"},
            "tolerance": {"type": "number", "minimum": 0},
            "relative": {"type": "number", "minimum": 0, "maximum": 1},
            "decimal": {"enum": ["auto", ".", ","]},
            "date_order": {"enum": ["unknown", "dmy", "mdy"]},
        },
        "required": ["fields"],
        "additionalProperties": False,
    },
    reference_schema={"type": "object", "minProperties": 1},
    check=_check,
)
