from collections.abc import Mapping
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from workers.evidence import broken, collect_evidence

pytestmark = pytest.mark.asyncio


def _program(name: str) -> dict[str, Any]:
    reference = {"calls": [{"expected": name}]}
    return {"name": name, "kind": "python_tests", "params": {"entry_point": name}, "reference": reference}


def _task(verifier: VerifierSpec) -> TaskSpec:
    return TaskSpec(id="t", family="f", messages=(ChatMessage(role="user", content="?"),), verifier=verifier)


async def _run(task: TaskSpec, answer: str) -> Mapping[str, Any]:
    return {"status": "ok", "calls": [], "ran": (task.verifier.params["entry_point"], answer)}


GRAPH = VerifierSpec(kind="graph", params={"nodes": [_program("a"), _program("b")]})


async def test_each_node_of_a_graph_gets_evidence_from_its_own_part_of_the_answer() -> None:
    evidence = await collect_evidence(_task(GRAPH), '{"a": "one", "b": "two"}', {"python_calls": _run})

    ran = {name: own["python_calls"]["ran"] for name, own in evidence["nodes"].items()}
    assert ran == {"a": ("a", "one"), "b": ("b", "two")}


async def test_a_graph_behind_a_gate_gets_its_evidence_too() -> None:
    gate = {"first": {"kind": "exact"}, "then": {"kind": "graph", "params": GRAPH.params}}

    evidence = await collect_evidence(
        _task(VerifierSpec(kind="gate", params=gate)), '{"a": "one", "b": "two"}', {"python_calls": _run}
    )

    assert sorted(evidence["nodes"]) == ["a", "b"]


async def test_nothing_runs_for_an_answer_that_is_not_one_object() -> None:
    evidence = await collect_evidence(_task(GRAPH), "one", {"python_calls": _run})

    assert evidence["nodes"] == {}


async def test_a_sandbox_that_broke_in_one_node_is_named() -> None:
    async def down(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        return {"status": "infra_error", "detail": "no sandbox"}

    evidence = await collect_evidence(_task(GRAPH), '{"a": "", "b": ""}', {"python_calls": down})

    assert broken(evidence) == "a: python_calls: no sandbox"
