import json
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec, needs

NODES: list[dict[str, Any]] = [
    {"name": "net", "kind": "numeric", "reference": 100, "weight": 2},
    {"name": "tax", "kind": "numeric", "reference": 19, "after": ["net"]},
    {"name": "total", "kind": "numeric", "reference": 119, "after": ["net", "tax"]},
]
RIGHT = {"net": 100, "tax": 19, "total": 119}


def _answer(**changed: Any) -> str:
    return json.dumps(RIGHT | changed)


def test_all_nodes_must_pass(judge: Any) -> None:
    verdict = judge("graph", None, _answer(), nodes=NODES)

    assert (verdict.state, verdict.score) == ("passed", 1.0)
    assert [(check.name, check.score) for check in verdict.checks] == [("net", 1), ("tax", 1), ("total", 1)]


def test_a_last_node_that_fails_leaves_the_weighted_share_of_the_others(judge: Any) -> None:
    verdict = judge("graph", None, _answer(total=1), nodes=NODES)

    assert (verdict.state, verdict.score) == ("failed", 0.75)
    assert verdict.reasons[0].startswith("total: ")


def test_a_node_earns_nothing_when_what_it_builds_on_failed(judge: Any) -> None:
    verdict = judge("graph", None, _answer(net=1), nodes=NODES)

    assert (verdict.state, verdict.score) == ("failed", 0.0)
    assert verdict.checks[2].reason == "Not judged: net, tax did not pass."


def test_an_answer_that_is_not_one_object_earns_nothing(judge: Any) -> None:
    for answer in (
        "",
        "119",
        f"{_answer()} {_answer()}",
        '{"net": 100, "net": 100, "tax": 19, "total": 119}',
    ):
        verdict = judge("graph", None, answer, nodes=NODES)

        assert (verdict.state, verdict.score) == ("failed", 0.0)


def test_a_missing_part_is_named(judge: Any) -> None:
    verdict = judge("graph", None, '{"net": 100}', nodes=NODES)

    assert "The answer has no part “tax”." in verdict.checks[1].reason
    assert verdict.score == 0.5


def test_a_node_that_cannot_be_judged_leaves_the_whole_undecided(judge: Any) -> None:
    program = {
        "name": "code",
        "kind": "python_tests",
        "params": {"entry_point": "f"},
        "reference": {"calls": [{"expected": 1}]},
        "after": ["total"],
    }

    verdict = judge("graph", None, _answer(code="def f(): return 1"), nodes=[*NODES, program])

    assert (verdict.state, verdict.score) == ("unscored", None)
    assert verdict.reasons[0].startswith("code: ")


def test_evidence_of_a_node_is_its_own(judge: Any) -> None:
    def program(name: str) -> dict[str, Any]:
        reference = {"calls": [{"expected": name}]}
        return {
            "name": name,
            "kind": "python_tests",
            "params": {"entry_point": "f"},
            "reference": reference,
        }

    def report(value: str) -> dict[str, Any]:
        return {"python_calls": {"status": "ok", "calls": [{"status": "ok", "value": value}]}}

    evidence = {"nodes": {"a": report("a"), "b": report("a")}}

    verdict = judge("graph", None, '{"a": "", "b": ""}', evidence, nodes=[program("a"), program("b")])

    assert [(check.name, check.score) for check in verdict.checks] == [("a", 1.0), ("b", 0.0)]


def test_fractions_reach_the_node_with_the_digits_that_were_written(judge: Any) -> None:
    nodes = [{"name": "x", "kind": "json_fields", "params": {"fields": {"amount": "number"}}}]

    verdict = judge("graph", {"x": {"amount": 0.30}}, '{"x": {"amount": 0.30}}', nodes=nodes)

    assert verdict.state == "passed"


def test_a_graph_needs_what_its_nodes_need() -> None:
    params = {"nodes": [*NODES, {"name": "code", "kind": "python_tests", "params": {"entry_point": "f"}}]}

    assert needs(VerifierSpec(kind="graph", params=params)) == {"python_calls"}


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([{"name": "a", "kind": "nothing"}], "There is no verifier 'nothing'"),
        ([{"name": "a", "kind": "graph", "params": {"nodes": NODES}}], "is a graph itself"),
        ([{"name": "a", "kind": "exact", "reference": "x", "after": ["a"]}], "wait for each other"),
        ([{"name": "a", "kind": "exact", "reference": 1}], "not of type 'string'"),
    ],
)
def test_an_unsound_graph_is_refused_with_the_reason(nodes: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InvalidVerifier, match=words):
        check_spec(VerifierSpec(kind="graph", params={"nodes": nodes}), None)
