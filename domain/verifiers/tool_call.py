"""The answer is one tool call: the right name with exactly the right arguments.

Read are ``{"name": …, "arguments": {…}}`` and OpenAI's ``tool_calls`` (the list, or an object that
holds it) with exactly one call, whose arguments may be JSON text.
"""

from decimal import Decimal
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, shown
from domain.verifiers.strict_json import NotStrictJson, parse_strict, parse_strict_object

_MESSAGE_KEYS = {"role", "content", "tool_calls"}
_CALL_KEYS = {"id", "type", "index", "function"}


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    try:
        name, arguments = read_call(answer, fence=task.verifier.params.get("fence", False))
    except NotStrictJson as error:
        reason = str(error)
        return failed(reason, checks=[Check(name="call", role="format", score=0.0, reason=reason)])

    checks = [Check(name="call", role="format", score=1.0)]
    expected = task.reference["arguments"]
    reason = "" if name == task.reference["name"] else f"The call goes to {shown(name)}."
    checks.append(Check(name="name", score=0.0 if reason else 1.0, reason=reason))
    for key in [*expected, *(key for key in arguments if key not in expected)]:
        reason = _deviation(key, arguments, expected)
        checks.append(Check(name=f"arguments.{key}", score=0.0 if reason else 1.0, reason=reason))

    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    terminal = [check.score for check in checks if check.role == "terminal" and check.score is not None]
    share = sum(terminal) / len(terminal) if name == task.reference["name"] else 0.0
    return failed(*reasons, score=share, checks=checks)


def read_call(answer: str, *, fence: bool = False) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the one call in ``answer``. Raises ``NotStrictJson``."""
    value = parse_strict(answer, fence=fence)
    if isinstance(value, dict) and "tool_calls" in value:
        if not set(value) <= _MESSAGE_KEYS:
            raise NotStrictJson("The answer holds more than a tool call.")
        value = value["tool_calls"]
    if isinstance(value, list):
        if len(value) != 1:
            raise NotStrictJson(f"Exactly one call is expected; the answer holds {len(value)}.")
        value = value[0]
    if isinstance(value, dict) and "function" in value:
        if not set(value) <= _CALL_KEYS:
            raise NotStrictJson("The call has keys that do not belong to a call.")
        value = value["function"]
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise NotStrictJson("A call is an object with exactly the keys name and arguments.")
    name, arguments = value["name"], value["arguments"]
    if isinstance(arguments, str):
        arguments = parse_strict_object(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise NotStrictJson("The name must be text and the arguments an object.")
    return name, arguments


def json_equal(a: Any, b: Any) -> bool:
    """Typed equality of JSON values: True is not 1, "1" is not 1, 1 and 1.0 are one number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal):
        return Decimal(str(a)) == Decimal(str(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(json_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(json_equal(value, b[key]) for key, value in a.items())
    return type(a) is type(b) and bool(a == b)


def _deviation(key: str, arguments: dict[str, Any], expected: dict[str, Any]) -> str:
    if key not in arguments:
        return f"Argument {key!r} is missing."
    if key not in expected:
        return f"Argument {key!r} was not expected."
    if json_equal(arguments[key], expected[key]):
        return ""
    got = arguments[key]
    return f"Argument {key!r} is wrong: {shown(str(got) if isinstance(got, Decimal) else got)}."


KIND = VerifierKind(
    name="tool_call",
    title="Tool call",
    description=(
        "The answer is exactly one tool call with the right name and exactly the right arguments, "
        "compared by type and value."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {"fence": {"type": "boolean"}},
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    },
)
