"""What the world is like after the episode: values at places in the final state, and nothing else touched.

``reference``: ``{"checks": [{"path", one of "equals" | "in" | "contains" | "lacks" | "absent" | "count"}]}``;
paths are those of ``domain.json_paths``, starting inside the state ("/orders/orders/O-1/status").
Whatever else changed, against ``environment_params["state"]`` or ``params["start"]``, must be named in
``params["allow"]``; a place that a check names may change. What the agent says is never looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.json_paths import MISSING, at, covers, differences, parts_of, written
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.tool_call import json_equal

EVIDENCE = "end_state"
_OPERATORS = ("equals", "in", "contains", "lacks", "absent", "count")
_NAMED = 5


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping) or not isinstance(report.get("state"), Mapping):
        return unscored("There is no final state: the task's environment keeps none.")
    start = task.verifier.params.get("start", task.environment_params.get("state"))
    if not isinstance(start, Mapping):
        return unscored("The state at the start is not known, so nothing can be said about changes.")
    state, wanted = report["state"], task.reference["checks"]

    checks = [_check_of(item, state) for item in wanted]
    strays = _strays(start, state, [item["path"] for item in wanted], task.verifier.params.get("allow", []))
    reason = f"Changed without need: {', '.join(shown(path) for path in strays[:_NAMED])}." if strays else ""
    guard = Check(name="nothing else changed", role="guard", score=0.0 if strays else 1.0, reason=reason)

    reasons = [check.reason for check in (*checks, guard) if check.reason]
    if not reasons:
        return passed([*checks, guard])
    # Only what had to be brought about earns anything: what was so at the start is no work.
    asked = [
        check
        for item, check in zip(wanted, checks, strict=True)
        if _check_of(item, start).score != 1.0 or check.score != 1.0
    ]
    share = sum(check.score == 1.0 for check in asked) / len(asked) if asked and not strays else 0.0
    return failed(*reasons, score=share, checks=[*checks, guard])


def _check_of(item: Mapping[str, Any], state: Any) -> Check:
    reason = _deviation(item, at(state, item["path"]))
    return Check(name=item.get("name") or item["path"], score=0.0 if reason else 1.0, reason=reason)


def _deviation(item: Mapping[str, Any], got: Any) -> str:
    place = item.get("name") or item["path"]
    if "absent" in item:
        return "" if got is MISSING else f"{place} should not be there."
    if got is MISSING:
        return f"{place} is missing."
    if "equals" in item:
        return "" if json_equal(got, item["equals"]) else f"{place} is {shown(got)}."
    if "in" in item:
        return "" if any(json_equal(got, one) for one in item["in"]) else f"{place} is {shown(got)}."
    if "count" in item:
        size = len(got) if isinstance(got, list | dict) else None
        return "" if size == item["count"] else f"{place} holds {'no list' if size is None else size}."
    if "contains" in item:
        return (
            "" if _contains(got, item["contains"]) else f"{place} does not contain {shown(item['contains'])}."
        )
    return f"{place} contains {shown(item['lacks'])}." if _contains(got, item["lacks"]) else ""


def _contains(got: Any, wanted: Any) -> bool:
    """A text in a text (whatever its case and spaces), or an element of a list that has all of ``wanted``."""
    if isinstance(got, str):
        return isinstance(wanted, str) and _folded(wanted) in _folded(got)
    return isinstance(got, list) and any(_has(element, wanted) for element in got)


def _has(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, Mapping) and isinstance(value, Mapping):
        return all(key in value and _has(value[key], part) for key, part in pattern.items())
    return json_equal(value, pattern)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _strays(start: Any, state: Any, checked: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """Places that differ from the start and that nobody allowed to."""
    patterns = [*checked, *allowed]
    return [
        written(parts)
        for parts, sizes in differences(start, state)
        if not any(covers(pattern, parts, sizes) for pattern in patterns)
    ]


def _check(params: Mapping[str, Any], reference: Any) -> None:
    for item in reference["checks"]:
        if sum(name in item for name in _OPERATORS) != 1:
            raise InvalidVerifier(
                f"Verifier 'end_state', reference: the check at {item['path']!r} needs one of "
                f"{', '.join(_OPERATORS)}."
            )
    for path in [*(item["path"] for item in reference["checks"]), *params.get("allow", [])]:
        try:
            parts_of(path)
        except ValueError as error:
            raise InvalidVerifier(f"Verifier 'end_state': {error}.") from error


KIND = VerifierKind(
    name=EVIDENCE,
    title="End state",
    description=(
        "The final state of the environment has the right values at the named places, and nothing else "
        "changed unless allowed. Only the state counts, not what the agent says about it."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "allow": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "start": {"type": "object"},
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "checks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "minLength": 1},
                        "name": {"type": "string", "minLength": 1},
                        "equals": {},
                        "in": {"type": "array", "minItems": 1},
                        "contains": {},
                        "lacks": {},
                        "absent": {"const": True},
                        "count": {"type": "integer", "minimum": 0},
                    },
                    "required": ["path"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["checks"],
        "additionalProperties": False,
    },
    check=_check,
)
