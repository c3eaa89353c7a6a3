from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import (
    KINDS,
    InvalidVerifier,
    UnknownVerifier,
    check_params,
    check_spec,
    needs,
    register,
    registry,
)
from domain.verifiers.base import VerifierKind, passed

YES = {"kind": "exact"}
SOUND = {
    "exact": ({}, "a"),
    "numeric": ({"tolerance": 0.1}, "1,5"),
    "json_fields": ({"fields": {"a": "number"}}, {"a": 1}),
    "tool_call": ({}, {"name": "f", "arguments": {}}),
    "python_tests": ({"entry_point": "f"}, {"calls": [{"args": [], "expected": None}]}),
    "all": ({"parts": [{"kind": "exact"}]}, "a"),
    "any": ({"parts": [{"kind": "exact"}, {"kind": "numeric", "reference": 1}]}, "a"),
    "weighted": ({"parts": [{"kind": "exact", "weight": 2}], "threshold": 0.5}, "a"),
    "gate": ({"first": {"kind": "exact"}, "then": {"kind": "exact"}}, "a"),
    "graph": ({"nodes": [{"name": "a", "kind": "exact"}]}, {"a": "x"}),
    "lint": ({"select": ["F", "E501"]}, None),
    "mutants": ({}, {"program": {"a.py": "x = 1"}, "mutants": [{"a.py": "x = 2"}]}),
    "sql_result": ({}, {"databases": [{"script": "create table t (a int);", "rows": [[1]]}]}),
    "repo_tests": (
        {"sources": ["shop/*.py"]},
        {
            "files": {"shop/cart.py": "x = 1\n"},
            "tests": {"tests/test_h.py": "…"},
            "ids": ["tests/test_h.py::test_a"],
        },
    ),
    "regex": ({"pattern": "[A-Z]{2}-[0-9]+"}, None),
    "json_schema": ({"schema": {"type": "object", "required": ["a"]}}, None),
    "accounting": ({"relations": [{"formula": "a == b + c"}]}, {"a": 3, "b": 1, "c": 2}),
    "table": ({"key": ["id"], "columns": {"id": "text", "n": "number"}}, [{"id": "a", "n": 1}]),
    "ticket": ({"ticket": "T-1"}, {"resolution": "refunded"}),
    "rules": ({"required": [{"name": "when", "any": ["on Monday"]}]}, None),
    "judge": ({"criteria": ["It is polite."]}, None),
    "label": ({"criteria": ["Its tone."], "labels": ["kind", "rude"], "passing_labels": ["kind"]}, None),
    "pairwise": ({"criteria": ["It is polite."]}, "We are glad to help you."),
    "end_state": ({"allow": ["/refunds"]}, {"checks": [{"path": "/a", "equals": 1}]}),
    "geometry": ({"checks": ["difference"]}, {"script": "part = box(1, 1, 1)"}),
    "scene": ({"goals": {"on": [["a", "floor"]]}}, {"parts": {"a": "part = box(1, 1, 1)"}}),
    "string_check": ({"operation": "ilike"}, "a"),
    "contains": ({"texts": ["a", "b"], "mode": "any", "where": "end"}, None),
    "similarity": ({"metric": "rouge_l", "threshold": 0.5}, ["a b", "c"]),
    "grader_python": ({"source": "def grade(sample, item):\n    return 1.0\n"}, None),
    "not": ({"part": {"kind": "exact"}}, "a"),
    "scorer": ({}, {"dataset": "gcd", "seed": 1, "entry": "0" * 16, "answer": "2"}),
    "trace": ({"order": [["a", "b"]]}, {"required": [{"name": "a"}]}),
}


def test_every_kind_accepts_a_sound_specification() -> None:
    assert set(SOUND) == set(KINDS)
    for kind, (params, reference) in SOUND.items():
        check_spec(VerifierSpec(kind=kind, params=params), reference)


@pytest.mark.parametrize(
    ("kind", "params", "reference", "sentence"),
    [
        ("exact", {}, 1, "reference"),
        ("exact", {}, "  ", "reference"),
        ("exact", {"normalise": True}, "a", "normalise"),
        ("numeric", {}, "1 or 2", "not one finite number"),
        ("numeric", {"tolerance": -1}, 1, "tolerance"),
        ("json_fields", {}, {"a": 1}, "fields"),
        ("json_fields", {"fields": {"a": "money"}}, {"a": 1}, "money"),
        ("json_fields", {"fields": {"a": "number"}}, {"b": 1}, "differ in a, b"),
        ("json_fields", {"fields": {"a": "date"}}, {"a": "soon"}, "field 'a'"),
        ("tool_call", {}, None, "reference"),
        ("tool_call", {}, {"name": "f"}, "arguments"),
        ("python_tests", {"entry_point": "f()"}, {"calls": [{"expected": 1}]}, "entry_point"),
        ("python_tests", {"entry_point": "f"}, {"calls": []}, "calls"),
        (
            "python_tests",
            {"entry_point": "f"},
            {"calls": [{"expected": {"t": "set", "v": 1}}]},
            "call 1",
        ),
        ("all", {"parts": []}, "a", "parts"),
        ("not", {}, "a", "part"),
        ("not", {"part": {"kind": "magic"}}, "a", "magic"),
        ("string_check", {"operation": "neq"}, "a", "operation"),
        ("string_check", {"operation": "eq"}, "", "reference"),
        ("contains", {"texts": []}, None, "texts"),
        ("contains", {"texts": [" "]}, None, "texts/0"),
        ("contains", {"texts": ["A", "a"], "ignore_case": True}, None, "written twice"),
        ("similarity", {"metric": "bleu"}, "a", "threshold"),
        ("similarity", {"metric": "bleu", "threshold": 0}, "a", "threshold"),
        ("similarity", {"metric": "cosine", "threshold": 0.5}, "a", "cosine_tokens"),
        ("similarity", {"metric": "rouge_5", "threshold": 0.5}, "four words are few", "too short"),
        ("similarity", {"metric": "meteor", "threshold": 0.6}, ["two words", "word"], "scores 0.500"),
        ("similarity", {"metric": "bleu", "threshold": 0.5}, "a " * 20_000, "at most 20000"),
        ("similarity", {"metric": "bleu", "threshold": 0.5}, ["a " * 5_000] * 11, "at most 100000"),
        ("similarity", {"metric": "bleu", "threshold": 0.5}, [], "reference"),
        ("grader_python", {"source": "def grade(sample):\n  return 1"}, None, "two arguments"),
        ("grader_python", {"source": "grade = 1"}, None, "must define a function"),
        ("grader_python", {"source": "async def grade(a, b): return 1"}, None, "not async"),
        ("grader_python", {"source": "def grade(a, b:\n"}, None, "line 1 is no Python"),
        ("grader_python", {"source": "(" * 10_000}, None, "no Python"),
        ("grader_python", {"source": "x\0"}, None, "no Python"),
        ("all", {"parts": [{"kind": "exact"}]}, 1, "'exact'"),
    ],
)
def test_an_unsound_specification_is_refused_with_a_sentence(
    kind: str, params: Any, reference: Any, sentence: str
) -> None:
    with pytest.raises(InvalidVerifier, match=r"\.$") as caught:
        check_spec(VerifierSpec(kind=kind, params=params), reference)

    assert sentence in str(caught.value)


def test_an_unknown_kind_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(UnknownVerifier, match=r"no verifier 'magic'.*numeric"):
        check_spec(VerifierSpec(kind="magic"), None)


def test_an_unsound_specification_decides_nothing(judge: Any) -> None:
    assert judge("magic", None, "a").state == "unscored"
    assert judge("numeric", "many", "a").state == "unscored"


def test_needs_are_collected_through_compositions() -> None:
    inner = {"kind": "python_tests", "params": {"entry_point": "f"}}
    nested = {"kind": "gate", "params": {"first": {"kind": "exact"}, "then": inner}}

    assert needs(VerifierSpec(kind="all", params={"parts": [nested]})) == {"python_calls"}
    assert needs(VerifierSpec(kind="exact")) == frozenset()


def test_a_name_is_registered_once() -> None:
    other = VerifierKind("exact", "", "", lambda task, answer, evidence: passed(), {}, {})

    with pytest.raises(ValueError, match="already registered"):
        register(other)


@pytest.mark.parametrize(
    ("kind", "params", "place"),
    [
        ("regex", {"pattern": "(a+)+$"}, "pattern"),
        ("regex", {"pattern": "a", "forbidden": ["b", "(a|aa)*$"]}, "forbidden/1"),
        ("rules", {"patterns": [{"name": "x", "pattern": "(a+)+$"}]}, "patterns/0"),
        ("similarity", {"metric": "cosine"}, "metric"),
        ("contains", {"texts": ["a"], "mode": "most"}, "mode"),
        ("grader_python", {"source": "x"}, "source"),
        ("all", {"parts": [YES, {"kind": "regex", "params": {"pattern": "("}}]}, "parts/1/params/pattern"),
        ("not", {"part": {"kind": "contains"}}, "part/params/texts"),
        ("gate", {"first": {"kind": "magic"}}, "first/kind"),
        ("any", {"parts": [{"kind": "numeric", "reference": "x"}]}, "parts/0/reference"),
        (
            "weighted",
            {"parts": [{"kind": "not", "params": {"part": {"kind": "similarity"}}}]},
            "parts/0/params/part/params/metric",
        ),
    ],
)  # fmt: skip
def test_parameters_without_a_reference_are_checked_and_the_wrong_one_is_named(
    kind: str, params: Any, place: str
) -> None:
    with pytest.raises(InvalidVerifier, match=r"\.$") as caught:
        check_params(kind, params)

    assert caught.value.place == place


def test_what_each_task_says_itself_may_be_left_out() -> None:
    for kind, spec in KINDS.items():
        if not {"parts", "first", "part", "nodes"} & set(spec.params_schema["properties"]):
            check_params(kind, {})


def test_sound_parameters_of_every_kind_are_accepted_without_a_reference() -> None:
    for kind, (params, _) in SOUND.items():
        check_params(kind, params, partial=False)


def test_a_verifier_that_breaks_on_an_answer_decides_nothing(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(task: object, answer: str, evidence: object) -> None:
        raise OverflowError("int too large")

    monkeypatch.setitem(registry._kinds, "exact", replace(registry._kinds["exact"], verify=broken))
    verdict = judge("exact", "x", "x")

    assert verdict.state == "unscored"
    assert "broke on this answer (OverflowError)" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("gate", {"first": {"kind": ""}, "then": {"kind": "exact"}}),
        ("weighted", {"parts": [{"kind": ""}]}),
        ("graph", {"nodes": [{"name": "a", "kind": "exact", "reference": "x", "weight": 10**400}]}),
    ],
)
def test_parameters_that_nobody_thought_of_are_refused_in_words(kind: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind=kind, params=params), None)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_schemas_of_every_kind_are_sound(name: str) -> None:
    kind = KINDS[name]
    jsonschema.Draft202012Validator.check_schema(kind.params_schema)
    jsonschema.Draft202012Validator.check_schema(kind.reference_schema)
