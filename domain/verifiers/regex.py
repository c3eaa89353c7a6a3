"""The answer matches a pattern, and what the pattern captures has the right value."""

import re
from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown
from domain.verifiers.exact import normalized
from domain.verifiers.patterns import FLAG_NAMES, MAX_TEXT, UnsafePattern, compiled, text_limit


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    text = answer.strip()
    if len(text) > (most := _text_limit(params)):
        return _failed("length", f"The answer has {len(text)} characters; at most {most} are read.")
    for forbidden in params.get("forbidden", []):
        if match := _pattern(forbidden, params).search(text):
            return _failed("forbidden", f"The answer holds what it must not: {shown(match.group(), 60)}.")
    pattern = _pattern(params["pattern"], params, search=params.get("mode", "full") == "search")
    if params.get("mode", "full") == "full":
        whole = pattern.fullmatch(text)
        matches = [whole] if whole else []
    else:
        matches = list(pattern.finditer(text))
    wanted = params.get("count", 1)
    if len(matches) != wanted:
        found = f"{len(matches)} times" if matches else "nowhere"
        return _failed("pattern", f"The pattern must match exactly {wanted} times; it matches {found}.")
    checks = [Check(name="pattern", role="format" if task.reference else "terminal", score=1.0)]
    for name, expected in (task.reference or {}).items():
        wrong = [match[name] for match in matches if normalized(match[name] or "") != normalized(expected)]
        reason = f"The part {name!r} is wrong: {shown(wrong[0], 60)}." if wrong else ""
        checks.append(Check(name=name, score=0.0 if reason else 1.0, reason=reason))
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    right = sum(1 for check in checks[1:] if check.score == 1.0)
    return failed(*reasons, score=right / len(checks[1:]), checks=checks)


def _failed(name: str, reason: str) -> Verdict:
    role: Any = "guard" if name == "forbidden" else "format"
    return failed(reason, checks=[Check(name=name, role=role, score=0.0, reason=reason)])


def _pattern(pattern: str, params: Mapping[str, Any], *, search: bool = True) -> re.Pattern[str]:
    return compiled(pattern, params.get("flags", ()), search=search)


def _text_limit(params: Mapping[str, Any]) -> int:
    flags, search = params.get("flags", ()), params.get("mode", "full") == "search"
    forbidden = (text_limit(pattern, flags) for pattern in params.get("forbidden", []))
    return min(text_limit(params["pattern"], flags, search=search), *forbidden, MAX_TEXT)


def check_params(params: Mapping[str, Any]) -> None:
    """Every pattern that is there compiles, and none could run for ever."""
    search = params.get("mode", "full") == "search"
    places = [("pattern", params[key], search) for key in ("pattern",) if key in params]
    places += [(f"forbidden/{index}", one, True) for index, one in enumerate(params.get("forbidden", []))]
    for place, pattern, anywhere in places:
        try:
            _pattern(pattern, params, search=anywhere)
        except UnsafePattern as error:
            raise InvalidVerifier(f"Verifier 'regex': {error}", place=place) from error


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_params(params)
    pattern = _pattern(params["pattern"], params, search=params.get("mode", "full") == "search")
    mode = params.get("mode", "full")
    if mode == "full" and params.get("count", 1) != 1:
        raise InvalidVerifier("Verifier 'regex': a full match happens once; count belongs to mode search.")
    if pattern.fullmatch("") if mode == "full" else pattern.search(""):
        raise InvalidVerifier("Verifier 'regex': the pattern matches an empty answer.")
    for name in reference or {}:
        if name not in pattern.groupindex:
            raise InvalidVerifier(f"Verifier 'regex', reference: the pattern has no group named {name!r}.")


KIND = VerifierKind(
    name="regex",
    title="Pattern",
    description=(
        "The whole answer matches the pattern, or the pattern occurs exactly as often as asked; forbidden "
        "patterns must not occur. Named groups are compared with the reference."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "mode": {"enum": ["full", "search"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 1000},
            "forbidden": {"type": "array", "maxItems": 20, "items": {"type": "string", "minLength": 1}},
            "flags": {"type": "array", "items": {"enum": list(FLAG_NAMES)}},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    reference_schema={"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    check=_check,
    check_params=check_params,
)
