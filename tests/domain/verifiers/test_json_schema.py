from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

SCHEMA = {
    "type": "object",
    "required": ["priority", "hours"],
    "properties": {"priority": {"enum": ["low", "high"]}, "hours": {"type": "number", "minimum": 0.5}},
    "additionalProperties": False,
}


def test_a_value_that_fits_passes(judge: Any) -> None:
    assert judge("json_schema", None, '{"priority": "low", "hours": 1.5}', schema=SCHEMA).state == "passed"
    fenced = '```json\n{"priority": "low", "hours": 2}\n```'
    assert judge("json_schema", None, fenced, schema=SCHEMA).state == "failed"
    assert judge("json_schema", None, fenced, schema=SCHEMA, fence=True).state == "passed"


def test_each_place_that_does_not_fit_is_named(judge: Any) -> None:
    verdict = judge("json_schema", None, '{"priority": "mid", "hours": 0.1}', schema=SCHEMA)

    assert verdict.state == "failed"
    assert verdict.score == 0.0
    assert [reason.split(":")[0] for reason in verdict.reasons] == ["At hours", "At priority"]


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"priority": "low", "hours": NaN}', '{"priority": "low", "priority": "low", "hours": 1}',
     '{"priority": "low", "hours": 1} {}', '{"priority": "low", "hours": true}'],
)  # fmt: skip
def test_lenient_json_fails(judge: Any, text: str) -> None:
    assert judge("json_schema", None, text, schema=SCHEMA).state == "failed"


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "objekt"}, "no valid schema"),
        ({"type": "object"}, "empty value"),
        ({"$ref": "https://example.com/schema.json"}, "leads out"),
        ({"required": ["a"], "properties": {"a": {"pattern": "(a+)+$"}}}, "repeats"),
    ],
)
def test_a_schema_that_is_unsound_or_says_nothing_is_refused(schema: Any, sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="json_schema", params={"schema": schema}), None)
