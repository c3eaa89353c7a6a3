"""The answer is a Python function; a sandbox calls it, and the values are compared here.

Tests and expected values stay on this side of the wall. The sandbox gets ``sandbox_calls(task)``
and ``answer_source(answer)`` and reports under the evidence key ``python_calls``:
``{"status", "calls": [{"status": "ok" | "error" | "missing", "value": typed JSON, "error"}],
"detail"}``. ``status`` is the host's word; everything in ``calls`` may be forged by the program
and is only ever compared as data (see ``domain.typed_json``).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from domain import typed_json
from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored

EVIDENCE = "python_calls"
UNDECIDED = frozenset({"infra_error", "unavailable"})
DIED = {
    "nonzero": "The program ended with an error.",
    "signal": "The program was ended by a signal.",
    "timeout": "The program did not finish in time.",
    "cpu": "The program used up its processor time.",
    "oom": "The program used up its memory.",
    "output_limit": "The program wrote too much output.",
}
Agree = Callable[[Any, Any], bool]
_ROUNDING = 1e-9
_FENCE = re.compile(r"```(?:python|py)?[ \t]*\r?\n(?P<body>.*?)```", re.DOTALL)


def sandbox_calls(task: TaskSpec) -> dict[str, Any]:
    """What the sandbox may know: entry point and inputs, never an expected value."""
    return {
        "entry_point": task.verifier.params["entry_point"],
        "calls": [
            {"args": call.get("args", []), "kwargs": call.get("kwargs", {})}
            for call in task.reference["calls"]
        ],
    }


def answer_source(answer: str) -> str:
    """The program in ``answer``: the content of its one code fence, or else the whole text."""
    blocks = _FENCE.findall(answer)
    return blocks[0] if len(blocks) == 1 else answer


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The program was not run: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))
    if status != "ok" and status not in DIED:
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail[:200]}".rstrip())

    expected, calls = task.reference["calls"], report.get("calls")
    finished = Check(
        name="finished", role="guard", score=1.0 if status == "ok" else 0.0, reason=DIED.get(status, "")
    )
    died = [f"{DIED[status]} {detail[:200]}".rstrip()] if status in DIED else []
    if not isinstance(calls, list) or len(calls) != len(expected):
        count = len(calls) if isinstance(calls, list) else 0
        miscount = f"{len(expected)} calls were made, {count} results came back."
        return failed(*died, *([] if died and not count else [miscount]), checks=[finished])

    agree = _agreement(task.verifier.params)
    checks = [
        _call_check(index, want["expected"], got, agree)
        for index, (want, got) in enumerate(zip(expected, calls, strict=True))
    ]
    right = sum(1 for check in checks if check.score == 1.0)
    if right == len(checks) and status == "ok":
        return passed([finished, *checks])
    reasons = [check.reason for check in checks if check.reason]
    share = right / len(checks) if status == "ok" else 0.0  # dying never pays
    return failed(*died, *reasons, score=share, checks=[finished, *checks])


def _agreement(params: Mapping[str, Any]) -> Agree:
    """How a returned value is compared. Floats may differ by ``relative``; an int is no float unless
    a tolerance was given, or ``numbers`` says that only the value counts."""
    rel = params.get("relative", _ROUNDING)
    strict = params.get("numbers", "value" if "relative" in params else "exact") == "exact"
    return lambda got, expected: typed_json.equal(got, expected, rel, strict=strict)


def _call_check(index: int, expected: Any, got: Any, agree: Agree) -> Check:
    name = f"call {index + 1}"
    reason = _deviation(expected, got, agree)
    return Check(
        name=name, score=0.0 if reason else 1.0, reason=f"Call {index + 1} {reason}" if reason else ""
    )


def _deviation(expected: Any, got: Any, agree: Agree) -> str:
    if not isinstance(got, Mapping):
        return "brought back a malformed result."
    if got.get("status") == "error":
        return f"raised {shown(str(got.get('error', '')), 120)}."
    if got.get("status") != "ok" or "value" not in got:
        return "brought back no result."
    try:
        value = typed_json.decode(got["value"])
    except ValueError:
        return "brought back a malformed value."
    if agree(value, typed_json.decode(expected)):
        return ""
    return f"returned {shown(value)}, which is wrong."


def _check(params: Mapping[str, Any], reference: Any) -> None:
    for index, call in enumerate(reference["calls"], start=1):
        try:
            for part in ("args", "kwargs", "expected"):
                typed_json.decode(call.get(part))
        except ValueError as error:
            raise InvalidVerifier(f"Verifier 'python_tests', reference: call {index}: {error}.") from error


KIND = VerifierKind(
    name="python_tests",
    title="Python function",
    description=(
        "The answer defines a function; a sandbox calls it and every returned value must equal the "
        "expected one by exact type and value (3 is not 3.0, unless a relative tolerance is given or "
        'numbers is "value"). A program that dies has failed; a sandbox that dies decides nothing.'
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "entry_point": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "relative": {"type": "number", "minimum": 0, "maximum": 0.1},
            "numbers": {"enum": ["exact", "value"]},
        },
        "required": ["entry_point"],
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "calls": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"args": {"type": "array"}, "kwargs": {"type": "object"}, "expected": {}},
                    "required": ["expected"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["calls"],
        "additionalProperties": False,
    },
    check=_check,
)
