"""The answer is a script that places parts: nothing collides, everything stands, the goals are met.

Sandboxes deliver the evidence ``scene`` (see ``workers/collect/scene.py``). ``reference.parts`` are
scripts of the parts to place, by name; the answer may move and turn them, and must place each of them
once and nothing else. ``params.goals`` say what the scene is for.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, unscored
from domain.verifiers.geometry import solid_reason, unmeasured

EVIDENCE = "scene"


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    if not answer.strip():
        return failed("The answer is empty.")
    report = evidence.get(EVIDENCE)
    if (verdict := unmeasured(report, "scene")) is not None:
        return verdict
    assert isinstance(report, Mapping)
    parts, wanted = report.get("parts"), report.get("wanted")
    if not isinstance(parts, Mapping) or not isinstance(wanted, Mapping):
        return unscored("The measurements of the scene are missing.")
    checks = [Check(name="built", role="guard", score=1.0)]
    problem = _parts_problem(parts, wanted)
    checks.append(Check(name="parts", role="guard", score=0.0 if problem else 1.0, reason=problem))
    if problem:
        return failed(problem, checks=checks)

    collisions = _collisions_reason(report.get("collisions"))
    checks.append(Check(name="no_collision", score=0.0 if collisions else 1.0, reason=collisions))
    stands = report.get("stands") is True
    falls = "" if stands else "The scene does not stand: a part floats or tips over."
    checks.append(Check(name="stands", score=1.0 if stands else 0.0, reason=falls))
    contacts = [tuple(pair) for pair in report.get("contacts", ())]
    for name, goal in task.verifier.params.get("goals", {}).items():
        reason = _GOALS[name](goal, parts, contacts)
        checks.append(Check(name=name, score=0.0 if reason else 1.0, reason=reason))
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    terminal = [check.score for check in checks if check.role == "terminal" and check.score is not None]
    return failed(*reasons, score=sum(terminal) / len(terminal), checks=checks)


def _parts_problem(parts: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    missing = [name for name in wanted if name not in parts]
    extra = [name for name in parts if name not in wanted]
    if missing:
        return f"Missing from the scene: {', '.join(missing)}."
    if extra:
        return f"Not asked for: {', '.join(name[:40] for name in extra[:5])}."
    for name, metrics in parts.items():
        if reason := solid_reason(metrics, f"part {name}"):
            return reason
        if not _same_shape(metrics, wanted[name]):
            return f"The part {name} was changed: only moving and turning are allowed."
    return ""


def _same_shape(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether one could be the other, moved or turned: by what neither can change."""
    if a["genus"] != b["genus"] or a["bodies"] != b["bodies"]:
        return False
    pairs = [
        (a["volume"], b["volume"]),
        (a["area"], b["area"]),
        (a["hull"], b["hull"]),  # a needle weighs nothing, and reaches anywhere
        (a["reach"], b["reach"]),
        *zip(a["inertia"], b["inertia"], strict=True),
    ]
    return all(math.isclose(one, other, rel_tol=1e-5) for one, other in pairs)


def _collisions_reason(collisions: Any) -> str:
    if not collisions:
        return ""
    one, two, _ = collisions[0]
    return f"{one} and {two} run into each other."


def _on(goal: Sequence[Sequence[str]], parts: Mapping[str, Any], contacts: Sequence[tuple[str, ...]]) -> str:
    for upper, lower in goal:
        if (upper, lower) not in contacts:
            return f"{upper} does not rest on {'the floor' if lower == 'floor' else lower}."
    return ""


def _height(goal: float, parts: Mapping[str, Any], contacts: Sequence[tuple[str, ...]]) -> str:
    top = max(metrics["high"][2] for metrics in parts.values())
    return "" if top >= goal - 0.1 else f"The scene is {top:.4g} mm high; at least {goal:g} mm are wanted."


def _below(goal: float, parts: Mapping[str, Any], contacts: Sequence[tuple[str, ...]]) -> str:
    top = max(metrics["high"][2] for metrics in parts.values())
    return "" if top <= goal + 0.1 else f"The scene is {top:.4g} mm high; at most {goal:g} mm are allowed."


def _within(goal: Sequence[float], parts: Mapping[str, Any], contacts: Sequence[tuple[str, ...]]) -> str:
    for name, metrics in parts.items():
        for axis, edge in enumerate(goal):
            if metrics["low"][axis] < -0.1 or metrics["high"][axis] > edge + 0.1:
                return f"{name} reaches over the edge of the {goal[0]:g} × {goal[1]:g} mm floor."
    return ""


def _apart(
    goal: Sequence[Sequence[Any]], parts: Mapping[str, Any], contacts: Sequence[tuple[str, ...]]
) -> str:
    for one, two, least in goal:
        a, b = parts[one], parts[two]
        gaps = [max(a["low"][i] - b["high"][i], b["low"][i] - a["high"][i]) for i in (0, 1)]
        if max(gaps) < least - 0.1:
            return f"{one} and {two} are {max(gaps):.4g} mm apart, not {least:g}."
    return ""


_Goal = Callable[[Any, Mapping[str, Any], Sequence[tuple[str, ...]]], str]
_GOALS: dict[str, _Goal] = {"on": _on, "height": _height, "below": _below, "within": _within, "apart": _apart}


def _check(params: Mapping[str, Any], reference: Any) -> None:
    for one, two, _ in params.get("goals", {}).get("apart", ()):
        if not {one, two} <= set(reference["parts"]):
            raise InvalidVerifier(
                f"Verifier 'scene': the goal names {one!r} and {two!r}, which are no parts."
            )
    for upper, lower in params.get("goals", {}).get("on", ()):
        if upper not in reference["parts"] or lower not in {*reference["parts"], "floor"}:
            raise InvalidVerifier(
                f"Verifier 'scene': the goal names {upper!r} on {lower!r}, which are no parts."
            )


_LENGTH = {"type": "number", "exclusiveMinimum": 0}

KIND = VerifierKind(
    name="scene",
    title="Scene",
    description=(
        "The answer is a script that places given parts. No two may share space, contacts must hold every "
        "part up without anything tipping over, and the goals must be met: what rests on what, height, floor."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "goals": {
                "type": "object",
                "properties": {
                    "on": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "items": {"type": "string"},
                            "minItems": 2,
                            "maxItems": 2,
                        },
                    },
                    "apart": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "prefixItems": [{"type": "string"}, {"type": "string"}, _LENGTH],
                            "items": False,
                            "minItems": 3,
                        },
                    },
                    "height": _LENGTH,
                    "below": _LENGTH,
                    "within": {"type": "array", "items": _LENGTH, "minItems": 2, "maxItems": 2},
                },
                "additionalProperties": False,
            }
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "properties": {
            "parts": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 20,
                "additionalProperties": {"type": "string", "pattern": r"\S"},
            }
        },
        "required": ["parts"],
        "additionalProperties": False,
    },
    check=_check,
)
