"""The answer is one strict JSON value that fits a JSON schema (draft 2020-12).

The schema says which form is right, so it should say a lot: enums, ranges, required keys. Nothing
is fetched from elsewhere; references lead into the schema itself.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.bounded_schema import CannotFollow, errors_in, lost_reference
from domain.verifiers.patterns import MAX_TEXT, UnsafePattern, compiled, patterns_in, text_limit
from domain.verifiers.strict_json import NotStrictJson, parse_strict

_MAX_REASONS = 8
_MAX_ERRORS = 200  # found, and then sorted by place
_MAX_ANSWER = 200_000
_MAX_DEPTH = 64


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    try:
        if len(answer) > _MAX_ANSWER:
            raise NotStrictJson(f"The answer has {len(answer)} characters; at most {_MAX_ANSWER} are read.")
        most = min((text_limit(pattern) for pattern in patterns_in(params["schema"])), default=MAX_TEXT)
        value = _plain(parse_strict(answer, fence=params.get("fence", False)), most)
    except NotStrictJson as error:
        reason = str(error)
        return failed(reason, checks=[Check(name="json", role="format", score=0.0, reason=reason)])

    try:
        errors = sorted(errors_in(params["schema"], value, _MAX_ERRORS), key=_place)
    except CannotFollow as problem:
        return unscored(f"Verifier 'json_schema': {problem}.")
    if not errors:
        return passed([Check(name="json", role="format", score=1.0), Check(name="schema", score=1.0)])
    reasons = [_reason(error) for error in errors[:_MAX_REASONS]]
    checks = [Check(name="json", role="format", score=1.0)]
    checks.append(Check(name="schema", score=0.0, reason=reasons[0]))
    return failed(*reasons, checks=checks)


def _plain(value: Any, most: int, depth: int = 0) -> Any:
    """Decimals as floats, which is what a schema speaks of; a text longer than ``most`` is refused before a
    pattern sees it, and so are whole numbers that no float holds and nesting without end."""
    if depth > _MAX_DEPTH:
        raise NotStrictJson(f"The JSON is nested deeper than {_MAX_DEPTH} levels.")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool) and not _in_range(value):
        raise NotStrictJson(f"The number {shown(value, 40)} is out of range.")
    if isinstance(value, str) and len(value) > most:
        raise NotStrictJson(f"A text in the answer has {len(value)} characters; at most {most} are read.")
    if isinstance(value, list):
        return [_plain(item, most, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_plain(key, most): _plain(item, most, depth + 1) for key, item in value.items()}
    return value


def _in_range(value: int) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _place(error: Any) -> str:
    return "/".join(str(part) for part in error.absolute_path)


def _reason(error: Any) -> str:
    where = _place(error)
    message = error.message if len(error.message) <= 160 else error.message[:159] + "…"
    return f"{f'At {where}: ' if where else ''}{message}."


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_params(params)


def check_params(params: Mapping[str, Any]) -> None:
    schema = params.get("schema")
    if schema is None:
        return
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        for pattern in patterns_in(schema):
            compiled(pattern)
    except jsonschema.SchemaError as error:
        raise InvalidVerifier(f"Verifier 'json_schema': no valid schema: {error.message[:160]}.") from error
    except RecursionError:
        raise InvalidVerifier("Verifier 'json_schema': the schema is nested too deeply.") from None
    except UnsafePattern as error:
        raise InvalidVerifier(f"Verifier 'json_schema': {error}") from error
    if foreign := _foreign_references(schema):
        raise InvalidVerifier(f"Verifier 'json_schema': {foreign!r} leads out of the schema.")
    if lost := lost_reference(schema):
        raise InvalidVerifier(f"Verifier 'json_schema': {lost[:80]!r} leads nowhere in the schema.")
    nothing: tuple[Any, ...] = ({}, [], "", None)
    try:
        accepts_nothing = any(not errors_in(schema, empty, 1) for empty in nothing)
    except CannotFollow as problem:
        raise InvalidVerifier(f"Verifier 'json_schema': {problem}.") from None
    if accepts_nothing:
        raise InvalidVerifier(
            "Verifier 'json_schema': the schema accepts an empty value; say what is required."
        )


def _foreign_references(schema: Any) -> str:
    if isinstance(schema, list):
        return next((found for item in schema if (found := _foreign_references(item))), "")
    if not isinstance(schema, Mapping):
        return ""
    for key in ("$ref", "$dynamicRef"):
        target = schema.get(key)
        if isinstance(target, str) and not target.startswith("#"):
            return target
    return next((found for item in schema.values() if (found := _foreign_references(item))), "")


KIND = VerifierKind(
    name="json_schema",
    title="JSON schema",
    description=(
        "The answer is one strict JSON value that fits the schema; each place that does not is named. "
        "A schema that accepts an empty value is refused."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {"schema": {"type": "object", "minProperties": 1}, "fence": {"type": "boolean"}},
        "required": ["schema"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_check,
    check_params=check_params,
)
