import json
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

REFERENCE = {"revenue": 1000.0, "costs": 640.0, "profit": 360.0}
RELATIONS = [{"name": "profit", "formula": "profit == revenue - costs"}]
SOURCES = {"costs": "Cost of sales  (640.00)"}


def answer(**changes: Any) -> str:
    return json.dumps({**REFERENCE, **changes})


def test_right_figures_whose_relations_hold_pass(judge: Any) -> None:
    verdict = judge("accounting", REFERENCE, answer(revenue="1.000,00 EUR"), relations=RELATIONS, decimal=",")

    assert verdict.state == "passed"


def test_the_deviating_figure_and_its_source_are_named(judge: Any) -> None:
    verdict = judge("accounting", REFERENCE, answer(costs=-640), relations=RELATIONS, sources=SOURCES)

    assert verdict.state == "failed"
    assert "'costs'" in verdict.reasons[0]
    assert "Cost of sales  (640.00)" in verdict.reasons[0]
    assert "1640" in verdict.reasons[1]
    assert verdict.score == pytest.approx(2 / 4)


def test_zeros_satisfy_a_relation_and_earn_nothing(judge: Any) -> None:
    verdict = judge("accounting", REFERENCE, '{"revenue": 0, "costs": 0, "profit": 0}', relations=RELATIONS)

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_a_relation_over_rows_names_the_row(judge: Any) -> None:
    rows = {"lines": [{"quantity": 2, "price": 5, "amount": 10}, {"quantity": 3, "price": 5, "amount": 16}]}
    relations = [
        {"formula": "quantity * price == amount", "each": "lines"},
        {"formula": "sum(lines.amount) == net"},
    ]

    verdict = judge("accounting", {"net": 26}, json.dumps({"net": 26, **rows}), relations=relations)

    assert verdict.state == "failed"
    assert "row 2 of lines" in verdict.reasons[0]


def test_a_relation_over_rows_that_are_not_there_does_not_hold(judge: Any) -> None:
    relations = [{"formula": "quantity * price == amount", "each": "lines"}]

    assert judge("accounting", {"net": 26}, '{"net": 26, "lines": []}', relations=relations).state == "failed"
    assert judge("accounting", {"net": 26}, '{"net": 26}', relations=relations).state == "failed"


def test_a_derived_figure_without_a_reference_is_held_by_its_relation(judge: Any) -> None:
    relations = [{"formula": "margin == profit / revenue", "tolerance": 0.001}]

    assert judge("accounting", REFERENCE, answer(margin="36 %"), relations=relations).state == "passed"
    assert judge("accounting", REFERENCE, answer(margin=0.63), relations=relations).state == "failed"


@pytest.mark.parametrize("text", ["", "360", "[360]", answer()[:-1], answer() + answer()])
def test_what_is_no_single_object_fails(judge: Any, text: str) -> None:
    assert judge("accounting", REFERENCE, text, relations=RELATIONS).state == "failed"


@pytest.mark.parametrize(
    ("params", "reference", "sentence"),
    [
        ({}, {"a": 0}, "zeros"),
        ({"relations": [{"formula": "a =="}]}, {"a": 1}, "ends too early"),
        ({"relations": [{"formula": "a + 1"}]}, {"a": 1}, "compares nothing"),
        ({"relations": [{"formula": "a == b"}]}, {"a": 1, "b": 2}, "itself breaks"),
        ({}, {"a": "many"}, "no number"),
    ],
)
def test_a_specification_that_cannot_judge_is_refused(params: Any, reference: Any, sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="accounting", params=params), reference)
