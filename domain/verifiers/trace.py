"""What the agent did on the way: calls that had to be made, must not be made, and their order.

``reference``: ``required`` [{name, arguments, times, more}] and ``forbidden`` [{name, arguments}];
``arguments`` are those that must have these values, others are free. A required call must succeed
exactly ``times`` (1) times, at least so often with ``more``; one call fulfils one requirement, so two
equal requirements need two calls. A forbidden call fails the trace even where it was refused.
``params``: ``order`` [[first, then]] by name: no ``then`` succeeds before a ``first`` has; ``max_calls``;
``allow_other`` false forbids all calls that nobody named.

Parts done are process checks: they earn something only as far as the whole does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.tool_call import json_equal

EVIDENCE = "trace"
Call = Mapping[str, Any]


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    calls = report.get("calls") if isinstance(report, Mapping) else None
    if not isinstance(calls, list | tuple) or not all(isinstance(call, Mapping) for call in calls):
        return unscored("There is no trace of calls: the task's environment keeps none.")
    params, required = task.verifier.params, task.reference.get("required", [])
    done = [call for call in calls if call.get("ok") is True]

    places = [index for index, want in enumerate(required) for _ in range(want.get("times", 1))]
    matched = _matching([[_fits(call, required[index]) for call in done] for index in places])
    steps = _steps(required, places, matched)
    used = {call for call in matched if call is not None}
    guards = [
        _guard("nothing forbidden", _forbidden(calls, task.reference.get("forbidden", []))),
        _guard("nothing twice", _again(done, used, required)),
        _guard("right order", _out_of_order(done, params.get("order", []))),
        _guard("no other calls", "" if params.get("allow_other", True) else _others(calls, required)),
        _guard("few calls", _too_many(calls, params.get("max_calls"))),
    ]
    reasons = [check.reason for check in (*steps, *guards) if check.reason]
    whole = Check(name="trace", score=0.0 if reasons else 1.0)
    if not reasons:
        return passed([whole, *steps, *guards])
    broken = any(guard.score == 0.0 for guard in guards)
    share = sum(call is not None for call in matched) / len(matched) if matched and not broken else 0.0
    return failed(*reasons, score=share, checks=[whole, *steps, *guards])


def _matching(fits: Sequence[Sequence[bool]]) -> list[int | None]:
    """For each place the call that fulfils it: as many places as possible, no call twice."""
    owner: dict[int, int] = {}

    def find(place: int, tried: set[int]) -> bool:
        for call, good in enumerate(fits[place]):
            if good and call not in tried:
                tried.add(call)
                if call not in owner or find(owner[call], tried):
                    owner[call] = place
                    return True
        return False

    for place in range(len(fits)):
        find(place, set())
    found: list[int | None] = [None] * len(fits)
    for call, place in owner.items():
        found[place] = call
    return found


def _steps(required: Sequence[Call], places: Sequence[int], matched: Sequence[int | None]) -> list[Check]:
    checks = []
    for index, want in enumerate(required):
        mine = [call for place, call in zip(places, matched, strict=True) if place == index]
        made = sum(call is not None for call in mine)
        short = f"{_said(want)} succeeded {made} of {len(mine)} times." if made < len(mine) else ""
        checks.append(Check(name=_said(want), role="process", score=made / len(mine), reason=short))
    return checks


def _again(done: Sequence[Call], used: set[int], required: Sequence[Call]) -> str:
    """A required call made once more than asked: a second refund is a second refund."""
    for index, call in enumerate(done):
        wants = [want for want in required if _fits(call, want)]
        if index not in used and wants and not any(want.get("more") for want in wants):
            return f"{_said(wants[0])} was made more often than asked."
    return ""


def _forbidden(calls: Sequence[Call], forbidden: Sequence[Call]) -> str:
    for call in calls:
        for bad in forbidden:
            if _fits(call, bad):
                return f"{_said(bad)} was not allowed."
    return ""


def _out_of_order(done: Sequence[Call], order: Sequence[Sequence[str]]) -> str:
    names = [call.get("name") for call in done]
    for first, then in order:
        if then in names and first not in names[: names.index(then)]:
            return f"{then} came before {first}."
    return ""


def _others(calls: Sequence[Call], required: Sequence[Call]) -> str:
    for call in calls:
        if not any(_fits(call, want) for want in required):
            return f"{shown(call.get('name'), 40)} was not asked for."
    return ""


def _too_many(calls: Sequence[Call], most: int | None) -> str:
    return f"{len(calls)} calls, {most} are allowed." if most is not None and len(calls) > most else ""


def _fits(call: Call, pattern: Call) -> bool:
    arguments = call.get("arguments")
    if call.get("name") != pattern["name"] or not isinstance(arguments, Mapping):
        return False
    wanted = pattern.get("arguments", {})
    return all(key in arguments and json_equal(arguments[key], value) for key, value in wanted.items())


def _guard(name: str, reason: str) -> Check:
    return Check(name=name, role="guard", score=0.0 if reason else 1.0, reason=reason)


def _said(call: Call) -> str:
    """The call as a person writes it: refund_order(order='O-1')."""
    inside = ", ".join(f"{key}={shown(value, 40)}" for key, value in call.get("arguments", {}).items())
    return f"{call['name']}({inside})"


def _check(params: Mapping[str, Any], reference: Any) -> None:
    if not reference.get("required") and not reference.get("forbidden"):
        raise InvalidVerifier("Verifier 'trace', reference: it neither requires nor forbids a call.")
    if not params.get("allow_other", True) and not reference.get("required"):
        raise InvalidVerifier("Verifier 'trace': without a required call, every call would be forbidden.")


_CALL = {
    "name": {"type": "string", "minLength": 1},
    "arguments": {"type": "object"},
}
_PAIR = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2, "maxItems": 2}

KIND = VerifierKind(
    name=EVIDENCE,
    title="Tool trace",
    description=(
        "The calls that an agent made: required ones with their arguments and how often, forbidden ones, "
        "and their order. Parts done count as process."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "order": {"type": "array", "items": _PAIR},
            "max_calls": {"type": "integer", "minimum": 1},
            "allow_other": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "required": {
                "type": "array",
                "maxItems": 50,
                "items": {
                    "type": "object",
                    "properties": {
                        **_CALL,
                        "times": {"type": "integer", "minimum": 1, "maximum": 50},
                        "more": {"type": "boolean"},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
            "forbidden": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": _CALL,
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
        "additionalProperties": False,
    },
    check=_check,
)
