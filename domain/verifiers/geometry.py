"""The answer is a script that makes a part; its mesh is measured against a target or against numbers.

Sandboxes deliver the evidence ``geometry`` (see ``workers/collect/geometry.py``): one runs the script
and hands over a bare mesh, another measures it. The reference holds the target's ``script``, numbers
of a ``target``, or both; neither ever enters the process that runs the answer.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.python_tests import DIED, answer_source

EVIDENCE = "geometry"
WITH_SCRIPT = ("difference", "views")
NUMBERS = ("volume", "area", "low", "high", "extents", "center", "genus", "bodies")
CHECKS = (*NUMBERS, *WITH_SCRIPT)
DEFAULT = ("volume", "low", "high", "genus", "bodies", "difference")
_LENGTHS = ("low", "high", "extents", "center")


def script_source(answer: str) -> str:
    """The script in ``answer``: the content of its one code fence, or else the whole text."""
    return answer_source(answer)


def unmeasured(report: Any, what: str) -> Verdict | None:
    """What a report without measurements means; None when there are some."""
    if not isinstance(report, Mapping):
        return unscored(f"The {what} was not measured: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))[:200]
    if status == "ok":
        return None
    if status == "error":
        reason = f"The script failed. {detail}".rstrip()
    elif status in DIED:
        reason = f"{DIED[status]} {detail}".rstrip()
    else:
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, f'Unknown sandbox status {status!r}')}. {detail}".rstrip())
    return failed(reason, checks=[Check(name="built", role="guard", score=0.0, reason=reason)])


def solid_reason(metrics: Mapping[str, Any], what: str) -> str:
    """Why ``metrics`` are not those of a sound solid, or ""."""
    if metrics.get("solid") is True:
        return ""
    if metrics.get("watertight") is not True:
        return f"The {what} is not closed: its surface has gaps, or its faces disagree."
    return f"The surface of the {what} runs through itself or is inside out."


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    if not answer.strip():
        return failed("The answer is empty.")
    report = evidence.get(EVIDENCE)
    if (verdict := unmeasured(report, "part")) is not None:
        return verdict
    assert isinstance(report, Mapping)
    metrics, target = report.get("metrics"), wanted_numbers(task.reference, report.get("target"))
    if not isinstance(metrics, Mapping):
        return unscored("The measurements of the part are missing.")
    checks = [Check(name="built", role="guard", score=1.0)]
    if reason := solid_reason(metrics, "part"):
        checks.append(Check(name="solid", role="guard", score=0.0, reason=reason))
        return failed(reason, checks=checks)
    checks.append(Check(name="solid", role="guard", score=1.0))

    params = task.verifier.params
    for name in _asked(params, task.reference):
        if name in WITH_SCRIPT:
            reason = _against(name, report.get("against"), params)
        elif name not in target or (name not in metrics and name != "extents"):
            return unscored(f"The {name} was not measured.")
        else:
            reason = _number(name, _value(metrics, name), target[name], params)
        checks.append(Check(name=name, score=0.0 if reason else 1.0, reason=reason))
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    terminal = [check.score for check in checks if check.role == "terminal" and check.score is not None]
    return failed(*reasons, score=sum(terminal) / len(terminal), checks=checks)


def wanted_numbers(reference: Any, measured: Any) -> dict[str, Any]:
    """The target's numbers: as measured of its script, and over them those that are stated."""
    found = dict(measured) if isinstance(measured, Mapping) else {}
    if "low" in found and "high" in found:
        found["extents"] = _value(found, "extents")
    return {**found, **reference.get("target", {})}


def _asked(params: Mapping[str, Any], reference: Mapping[str, Any]) -> Sequence[str]:
    if "checks" in params:
        return tuple(params["checks"])
    return DEFAULT if "script" in reference else tuple(reference["target"])


def _value(metrics: Mapping[str, Any], name: str) -> Any:
    if name == "extents":
        return [high - low for low, high in zip(metrics["low"], metrics["high"], strict=True)]
    return metrics[name]


def _number(name: str, got: Any, wanted: Any, params: Mapping[str, Any]) -> str:
    """A sentence when ``got`` is off, else ""."""
    if name in ("genus", "bodies"):
        what = "through holes" if name == "genus" else "separate bodies"
        return "" if got == wanted else f"The part has {got} {what}, not {wanted}."
    if name in _LENGTHS:
        tolerance = params.get("distance", 0.1)
        if all(abs(a - b) <= tolerance for a, b in zip(got, wanted, strict=True)):
            return ""
        return f"The {_SAID[name]} is {_lengths(got)}, not {_lengths(wanted)} mm."
    if math.isclose(got, wanted, rel_tol=params.get("relative", 0.01)):
        return ""
    unit = "mm³" if name == "volume" else "mm²"
    return f"The {name} is {got:.6g} {unit}, not {wanted:.6g}."


def _against(name: str, against: Any, params: Mapping[str, Any]) -> str:
    found = against if isinstance(against, Mapping) else {}
    if name == "difference":
        share, most = found.get("difference"), params.get("difference", 0.01)
        if isinstance(share, int | float) and share <= most:
            return ""
        return f"It differs from the target in {100 * (share or 1.0):.1f} % of the volume."
    views, least = found.get("views") or {}, params.get("views", 0.97)
    off = [side for side, share in views.items() if share < least]
    if views and not off:
        return ""
    return f"It looks different from {', '.join(off) or 'every side'}."


def _lengths(values: Sequence[float]) -> str:
    return " × ".join(f"{value:.4g}" for value in values)


_SAID = {"low": "lowest corner", "high": "highest corner", "extents": "size", "center": "centre of mass"}


def _check(params: Mapping[str, Any], reference: Any) -> None:
    has_script, target = "script" in reference, reference.get("target", {})
    if not has_script and not target:
        raise InvalidVerifier("Verifier 'geometry', reference: give a script or a target's numbers.")
    for name in params.get("checks", ()):
        if not has_script and name not in target:
            raise InvalidVerifier(
                f"Verifier 'geometry': the check {shown(name)} needs a script or a number in target."
            )


_TRIPLE = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}

KIND = VerifierKind(
    name="geometry",
    title="Part",
    description=(
        "The answer is a script that makes a part. The part must be one closed solid, and its volume, "
        "place, through holes and bodies must be the target's; where the target has a script, what differs "
        "between the two is measured too, in volume and from six sides."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "checks": {
                "type": "array",
                "items": {"enum": list(CHECKS)},
                "minItems": 1,
                "uniqueItems": True,
            },
            "relative": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.2},
            "distance": {"type": "number", "exclusiveMinimum": 0, "maximum": 10},
            "difference": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.2},
            "views": {"type": "number", "minimum": 0.8, "maximum": 1},
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "script": {"type": "string", "pattern": r"\S"},
            "target": {
                "type": "object",
                "properties": {
                    **{name: {"type": "number", "exclusiveMinimum": 0} for name in ("volume", "area")},
                    **{name: _TRIPLE for name in _LENGTHS},
                    "genus": {"type": "integer", "minimum": 0},
                    "bodies": {"type": "integer", "minimum": 1},
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    },
    check=_check,
)
