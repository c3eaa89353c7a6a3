"""Verifiers made of verifiers: all, any, weighted, gate, not.

A part is ``{"kind", "params", "reference"}``; without its own reference it uses the task's. A part
that could not decide leaves the whole undecided, unless another part has already settled it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import registry
from domain.verifiers.base import (
    Evidence,
    InvalidVerifier,
    UnknownVerifier,
    VerifierKind,
    Verify,
    unscored,
)

LISTS, SINGLE = ("parts", "nodes"), ("first", "then", "part")  # parameters that hold verifiers
_MAX_DEPTH = 5


def needs(spec: VerifierSpec) -> frozenset[str]:
    """Evidence that ``spec`` and all its parts ask of a sandbox. Raises ``UnknownVerifier``."""
    own = registry.find(spec.kind).needs
    return own.union(*(needs(_spec(part)) for part in _parts(spec.params)))


def kinds_of(spec: VerifierSpec) -> frozenset[str]:
    """The kind of ``spec`` and those of all its parts."""
    return frozenset({spec.kind}).union(*(kinds_of(_spec(part)) for part in _parts(spec.params)))


def _verify_all(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    verdicts = _judge(task, task.verifier.params["parts"], answer, evidence)
    if any(verdict.state == "failed" for verdict in verdicts):
        return _joined("failed", min(_scores(verdicts)), verdicts)
    if any(verdict.state == "unscored" for verdict in verdicts):
        return _joined("unscored", None, verdicts)
    return _joined("passed", min(_scores(verdicts)), verdicts)


def _verify_any(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    verdicts = _judge(task, task.verifier.params["parts"], answer, evidence)
    winners = [verdict for verdict in verdicts if verdict.state == "passed"]
    if winners:
        best = max(_scores(winners))
        return Verdict(state="passed", score=best, checks=_checks(verdicts))
    if any(verdict.state == "unscored" for verdict in verdicts):
        return _joined("unscored", None, verdicts)
    return _joined("failed", max(_scores(verdicts)), verdicts)


def _verify_weighted(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    parts = task.verifier.params["parts"]
    verdicts = _judge(task, parts, answer, evidence)
    if any(verdict.state == "unscored" for verdict in verdicts):
        return _joined("unscored", None, verdicts)
    weights = [float(part.get("weight", 1.0)) for part in parts]
    pairs = zip(weights, _scores(verdicts), strict=True)
    score = min(1.0, sum(weight * value for weight, value in pairs) / sum(weights))
    enough = score >= task.verifier.params.get("threshold", 1.0) - 1e-12
    return _joined("passed" if enough else "failed", score, verdicts)


def _verify_gate(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    (first,) = _judge(task, [params["first"]], answer, evidence)
    if first.state != "passed":
        return _joined(first.state, None if first.state == "unscored" else 0.0, [first])
    (then,) = _judge(task, [params["then"]], answer, evidence)
    return _joined(then.state, then.score, [first, then])


def _verify_not(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    """The part's own checks are left out: read without the "not", they would say the opposite."""
    part = task.verifier.params["part"]
    (verdict,) = _judge(task, [part], answer, evidence)
    if verdict.state == "unscored":
        return _joined("unscored", None, [verdict])
    name = f"not {part['kind']}"
    if verdict.state == "failed":
        return Verdict(state="passed", score=1.0, checks=(Check(name=name, score=1.0),))
    reason = f"The part “{part['kind']}” passed, and must not."
    return Verdict(
        state="failed", score=0.0, checks=(Check(name=name, score=0.0, reason=reason),), reasons=(reason,)
    )


def _judge(
    task: TaskSpec, parts: Sequence[Mapping[str, Any]], answer: str, evidence: Evidence
) -> list[Verdict]:
    verdicts = []
    for part in parts:
        nested = {"verifier": _spec(part), "reference": part.get("reference", task.reference)}
        try:
            verdicts.append(registry.verify(task.model_copy(update=nested), answer, evidence))
        except RecursionError:
            verdicts.append(unscored("The verifier is nested too deeply."))
    return verdicts


def _joined(state: Any, score: float | None, verdicts: Sequence[Verdict]) -> Verdict:
    reasons = tuple(reason for verdict in verdicts for reason in verdict.reasons)
    return Verdict(state=state, score=score, checks=_checks(verdicts), reasons=reasons)


def _checks(verdicts: Iterable[Verdict]) -> tuple[Check, ...]:
    return tuple(check for verdict in verdicts for check in verdict.checks)


def _scores(verdicts: Iterable[Verdict]) -> list[float]:
    return [verdict.score for verdict in verdicts if verdict.score is not None]


def _spec(part: Mapping[str, Any]) -> VerifierSpec:
    return VerifierSpec(kind=part["kind"], params=part.get("params", {}))


def _parts(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for _, part in _placed_parts(params)]


def _placed_parts(params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The parts with where they stand, as in ``parts/0``."""
    found = [(f"{key}/{at}", part) for key in LISTS for at, part in enumerate(params.get(key, ()))]
    found += [(key, params[key]) for key in SINGLE if key in params]
    return [(place, part) for place, part in found if isinstance(part, Mapping) and "kind" in part]


def _check(params: Mapping[str, Any], reference: Any) -> None:
    if _depth(params) > _MAX_DEPTH:
        raise InvalidVerifier(f"Verifiers are nested deeper than {_MAX_DEPTH} levels.")
    for part in _parts(params):
        registry.check_spec(_spec(part), part.get("reference", reference))


def _check_params(params: Mapping[str, Any]) -> None:
    """As ``_check``, before a task has brought a reference; a part is written out in full."""
    if _depth(params) > _MAX_DEPTH:
        raise InvalidVerifier(f"Verifiers are nested deeper than {_MAX_DEPTH} levels.")
    for place, part in _placed_parts(params):
        try:
            registry.check_params(part["kind"], part.get("params", {}), partial=False)
        except UnknownVerifier as error:
            raise UnknownVerifier(str(error), place=f"{place}/kind") from error
        except InvalidVerifier as error:
            inner = f"{place}/params/{error.place}".rstrip("/")
            raise InvalidVerifier(str(error), place=inner) from error
        if "reference" in part:
            try:
                registry.check_spec(_spec(part), part["reference"])
            except InvalidVerifier as error:
                raise InvalidVerifier(str(error), place=f"{place}/reference") from error


def _depth(params: Mapping[str, Any]) -> int:
    """Levels of nesting below ``params``, counted without recursion."""
    depth, level = 0, [params]
    while level and depth <= _MAX_DEPTH + 1:
        level = [part.get("params", {}) for outer in level for part in _parts(outer)]
        level = [inner for inner in level if isinstance(inner, Mapping)]
        depth += 1
    return depth - 1


def _kind(
    name: str, title: str, description: str, verify: Verify, properties: Mapping[str, Any]
) -> VerifierKind:
    required = [key for key in properties if key != "threshold"]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return VerifierKind(
        name=name,
        title=title,
        description=description,
        verify=verify,
        params_schema=schema,
        reference_schema={},
        check=_check,
        check_params=_check_params,
    )


_PART = {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "params": {"type": "object"},
        "reference": {},
        "weight": {"type": "number", "exclusiveMinimum": 0},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
_PARTS = {"type": "array", "minItems": 1, "maxItems": 20, "items": _PART}

KIND_LIST = (
    _kind("all", "All of", "Every part must pass; the score is the lowest.", _verify_all, {"parts": _PARTS}),
    _kind("any", "Any of", "One part must pass; the score is the highest.", _verify_any, {"parts": _PARTS}),
    _kind(
        "weighted",
        "Weighted",
        "The weighted mean of the parts' scores must reach the threshold.",
        _verify_weighted,
        {"parts": _PARTS, "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
    ),
    _kind(
        "gate",
        "Gate",
        "The second part counts only where the first has passed; otherwise the score is 0.",
        _verify_gate,
        {"first": _PART, "then": _PART},
    ),
    _kind(
        "not",
        "Not",
        "The part must fail; what it cannot decide stays undecided. An empty answer fails most parts: join "
        "not with a verifier that asks for something.",
        _verify_not,
        {"part": _PART},
    ),
)
