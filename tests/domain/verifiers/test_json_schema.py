from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, bounded_schema, check_spec

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


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same refusal, sooner."""
    monkeypatch.setattr(bounded_schema, "MOST_STEPS", 2_000)


def doubled(levels: int) -> dict[str, Any]:
    """Definitions of which each asks the next one twice."""
    twice = {
        f"a{at}": {"allOf": [{"$ref": f"#/$defs/a{at + 1}"}, {"$ref": f"#/$defs/a{at + 1}"}]}
        for at in range(levels)
    }
    return {**twice, f"a{levels}": {"type": "object"}}


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"$ref": "#"}, "refers to itself without end"),
        ({"required": ["a"], "properties": {"a": {"$ref": "#/$defs/b"}}}, "leads nowhere"),
        ({"$defs": doubled(40), "$ref": "#/$defs/a0", "required": ["a"]}, "steps"),
    ],
)
@pytest.mark.usefixtures("few_steps")
def test_a_schema_that_cannot_be_followed_is_refused(schema: Any, sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="json_schema", params={"schema": schema}), None)


@pytest.mark.parametrize(
    ("inner", "sentence"),
    [
        ({"$ref": "#/properties/a"}, "refers to itself without end"),
        ({"$ref": "#/$defs/a0"}, "steps"),
        ({"$ref": "#/properties/a", "unevaluatedProperties": False}, "refers to itself without end"),
    ],
)
@pytest.mark.usefixtures("few_steps")
def test_a_schema_that_cannot_be_followed_into_an_answer_decides_nothing(
    judge: Any, inner: dict[str, Any], sentence: str
) -> None:
    schema = {"$defs": doubled(40), "type": "object", "required": ["a"], "properties": {"a": inner}}
    verdict = judge("json_schema", None, '{"a": {}}', schema=schema)
    assert verdict.state == "unscored"
    assert sentence in verdict.reasons[0]


def test_a_long_list_is_looked_through_for_what_stands_twice_without_comparing_every_pair(judge: Any) -> None:
    schema = {"type": "array", "minItems": 1, "uniqueItems": True}
    items = ", ".join(f'{{"a": {at}}}' for at in range(12_000))
    assert judge("json_schema", None, f"[{items}]", schema=schema).state == "passed"
    assert judge("json_schema", None, f'[{items}, {{"a": 7.0}}]', schema=schema).state == "failed"
    assert judge("json_schema", None, "[1, true, 0, false]", schema=schema).state == "passed"


def test_a_choice_is_typed_as_json_is(judge: Any) -> None:
    schema = {"enum": [1, "1", {"a": [2]}]}
    assert judge("json_schema", None, "1.0", schema=schema).state == "passed"
    assert judge("json_schema", None, '{"a": [2.0]}', schema=schema).state == "passed"
    assert judge("json_schema", None, "true", schema=schema).state == "failed"


@pytest.mark.parametrize(
    "answer", ['{"hours": 1' + "0" * 350 + "}", '{"hours": ' + "[" * 70 + "]" * 70 + "}"]
)
def test_an_answer_out_of_range_or_nested_without_end_fails(judge: Any, answer: str) -> None:
    schema = {"type": "object", "required": ["hours"], "properties": {"hours": {"multipleOf": 0.5}}}
    assert judge("json_schema", None, answer, schema=schema).state == "failed"
