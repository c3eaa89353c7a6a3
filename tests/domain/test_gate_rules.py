"""Rules of a gate: read, put into words, stored, read again."""

import json

import pytest

from domain.gate_rules import Coverage, Floor, NonInferior, needs_baseline, rules_json, rules_read

ALL = [
    {"kind": "floor", "min_rate": 0.7},
    {"kind": "coverage", "min_coverage": 0.9},
    {"kind": "error_rate", "max_rate": 0.02},
    {"kind": "non_inferiority", "margin": 0.02},
    {"kind": "no_regression", "cases": ["refund-1", "refund-1", " tax-2 "], "tags": ["length = 512"]},
    {"kind": "latency", "p95_ms": 2000},
    {"kind": "cost", "max_usd": 0.002},
    {"kind": "slice_floor", "axis": "family", "min_rate": 0.5},
    {"kind": "slice_floor", "axis": "family", "value": "sums", "min_rate": 0.6},
]


def test_rules_come_back_as_they_were_stored():
    rules = rules_read(ALL)

    assert rules_read(json.loads(json.dumps(rules_json(rules)))) == rules
    assert rules[0] == Coverage(0.9)


def test_coverage_is_always_asked_for():
    assert rules_read([{"kind": "floor", "min_rate": 0.7}]) == (Coverage(0.95), Floor(0.7))
    assert rules_read([]) == ()


def test_names_are_trimmed_and_kept_once():
    rule = next(rule for rule in rules_read(ALL) if rule.kind == "no_regression")

    assert rule.cases == ("refund-1", "tax-2")
    assert rule.words == "cases refund-1, tax-2 and every case with length = 512 must not regress"


def test_rules_are_said_in_words():
    words = [rule.words for rule in rules_read(ALL)]

    assert words[0] == "at least 90 % of samples are scored"
    assert "at most 2 points worse than the version in service (α = 0.05)" in words
    assert "an answer costs at most $0.002 on average" in words
    assert words[-2:] == [
        "the pass rate's lower limit is at least 50 % on each family",
        "the pass rate's lower limit is at least 60 % on family = sums",
    ]


def test_only_comparing_rules_need_a_baseline():
    assert needs_baseline([NonInferior(0.02)])
    assert not needs_baseline(rules_read([{"kind": "no_regression", "cases": ["a"], "must": "pass"}]))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("floor", "the kind is one of"),
        ({"kind": ["floor"]}, "the kind is one of"),
        ({"kind": "flour"}, "the kind is one of coverage, error_rate, floor"),
        ({"kind": "floor"}, "a floor also needs min_rate"),
        ({"kind": "floor", "min_rate": 70}, "min_rate is a share from 0 to 1"),
        ({"kind": "floor", "min_rate": float("nan")}, "min_rate is a number"),
        ({"kind": "floor", "min_rate": True}, "min_rate is a number"),
        ({"kind": "floor", "min_rate": 0.7, "max": 1}, "a floor has no “max”"),
        ({"kind": "coverage", "min_coverage": 0.1}, "a share from 0.5 to 1"),
        ({"kind": "non_inferiority", "margin": 0}, "margin is a share"),
        ({"kind": "non_inferiority", "margin": 0.02, "alpha": 0.9}, "alpha lies"),
        ({"kind": "no_regression"}, "name at least one case or tag"),
        ({"kind": "no_regression", "cases": "refund-1"}, "cases is a list"),
        ({"kind": "no_regression", "cases": [""]}, "cases is a list"),
        ({"kind": "no_regression", "tags": ["hard"]}, "a tag is written “name=value”, not “hard”"),
        ({"kind": "no_regression", "cases": ["a"], "must": "try"}, "must is"),
        ({"kind": "latency", "p95_ms": 0}, "p95_ms lies above 0"),
        ({"kind": "latency", "p95_ms": 10**400}, "p95_ms is a number"),
        ({"kind": "cost"}, "a ceiling in dollars"),
        ({"kind": "slice_floor", "axis": " ", "min_rate": 0.5}, "name the axis"),
        ({"kind": "slice_floor", "axis": 3, "min_rate": 0.5}, "axis is a text"),
    ],
)
def test_what_cannot_be_a_rule_is_refused_with_its_number(row, words):
    with pytest.raises(ValueError, match="Rule 2: ") as raised:
        rules_read([{"kind": "error_rate", "max_rate": 0.5}, row])

    assert words in str(raised.value)


def test_two_rules_of_a_kind_are_refused():
    with pytest.raises(ValueError, match="one rule of the kind “floor”"):
        rules_read([{"kind": "floor", "min_rate": 0.7}] * 2)
    with pytest.raises(ValueError, match="two floors"):
        rules_read([{"kind": "slice_floor", "axis": "family", "min_rate": 0.7}] * 2)
