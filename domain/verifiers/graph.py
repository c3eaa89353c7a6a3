"""A composite task: every node of its graph is judged by a verifier of its own.

Passed only when every node has passed. A node whose predecessors failed earns nothing and is not
judged; the score is the weighted share of the nodes that passed. Evidence that belongs to one node
comes under ``nodes`` → its name; the rest (workspace, end state, trace) is the same for all.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict, VerifierSpec
from domain.task_graph import InvalidGraph, Node, TaskGraph, read_graph
from domain.verifiers import registry
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, unscored
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object

NAME = "graph"
NODES = "nodes"  # the evidence of single nodes, by name


def graph_of(task: TaskSpec) -> TaskGraph:
    """The graph of a task whose verifier is of this kind. Raises ``InvalidGraph``."""
    return read_graph(task.verifier.params["nodes"], task.reference)


def node_task(task: TaskSpec, node: Node) -> TaskSpec:
    """``task`` narrowed to what judges one node."""
    spec = VerifierSpec(kind=node.kind, params=dict(node.params))
    return task.model_copy(update={"verifier": spec, "reference": node.reference})


def node_answers(task: TaskSpec, answer: str) -> dict[str, str | None]:
    """Each node's part of ``answer`` as text; None where there is none. Raises ``NotStrictJson`` when a
    node asks for a part and the answer is not one strict JSON object."""
    nodes = graph_of(task).nodes
    asked = any(node.answer for node in nodes)
    whole = parse_strict_object(answer, fence=task.verifier.params.get("fence", False)) if asked else {}
    return {node.name: _part(whole, node.answer) if node.answer else answer for node in nodes}


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    graph = graph_of(task)
    try:
        answers = node_answers(task, answer)
    except NotStrictJson as error:
        return failed(str(error), checks=[Check(name="answer", role="format", score=0.0, reason=str(error))])

    own = evidence.get(NODES, {})
    shared = {name: report for name, report in evidence.items() if name != NODES}
    won: list[str] = []
    checks: list[Check] = []
    for node in graph.nodes:
        part = answers[node.name]
        missing = [name for name in node.after if name not in won]
        if missing:
            checks.append(_check(node, 0.0, f"Not judged: {', '.join(missing)} did not pass."))
        elif part is None:
            checks.append(_check(node, 0.0, f"The answer has no part “{'.'.join(node.answer)}”."))
        else:
            verdict = registry.verify(node_task(task, node), part, {**shared, **own.get(node.name, {})})
            reason = " ".join(verdict.reasons)[:500]
            if verdict.state == "unscored":  # what is unknown makes no share of a whole
                return unscored(f"{node.name}: {reason}", checks=[*checks, _check(node, None, reason)])
            if verdict.state == "passed":
                won.append(node.name)
            checks.append(_check(node, 1.0 if verdict.state == "passed" else 0.0, reason))
    if len(won) == len(graph.nodes):
        return passed(checks)
    reasons = [f"{check.name}: {check.reason}" for check in checks if check.score == 0.0]
    return failed(*reasons, score=graph.credit(won), checks=checks)


def _check(node: Node, score: float | None, reason: str) -> Check:
    return Check(name=node.name, score=score, reason="" if score == 1.0 else reason)


def _part(whole: Any, path: tuple[str, ...]) -> str | None:
    value = whole
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value if isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    """JSON again; fractions keep the digits that were written."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)}: {_written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(part) for part in value) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _sound(params: Mapping[str, Any], reference: Any) -> None:
    try:
        graph = read_graph(params["nodes"], reference)
    except InvalidGraph as error:
        raise InvalidVerifier(f"Verifier 'graph': {error}") from error
    for node in graph.nodes:
        if node.kind == NAME:
            raise InvalidVerifier(f"Node {node.name!r} is a graph itself; write its nodes into this one.")
        registry.check_spec(VerifierSpec(kind=node.kind, params=dict(node.params)), node.reference)


_NAME = {"type": "string", "minLength": 1, "maxLength": 60}
KIND = VerifierKind(
    name=NAME,
    title="Task graph",
    description=(
        "A composite task: each node is judged by its own verifier from its own part of the answer, and only "
        "where all it builds on has passed. All nodes must pass; the score is the weighted share that did."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array",
                "minItems": 1,
                "maxItems": 40,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": _NAME,
                        "kind": {"type": "string", "minLength": 1},
                        "params": {"type": "object"},
                        "reference": {},
                        "after": {"type": "array", "items": _NAME},
                        "weight": {"type": "number", "exclusiveMinimum": 0},
                        "answer": {
                            "anyOf": [
                                {"type": "string"},
                                {"type": "array", "items": {"type": "string"}},
                            ]
                        },
                    },
                    "required": ["name", "kind"],
                    "additionalProperties": False,
                },
            },
            "fence": {"type": "boolean"},
        },
        "required": ["nodes"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_sound,
)
