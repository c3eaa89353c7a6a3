import json
from typing import Any

import pytest

REFERENCE = {
    "name": "book",
    "arguments": {"city": "Rome", "nights": 2, "breakfast": True, "tags": ["a", None]},
}


def call(**changes: Any) -> dict[str, Any]:
    return {"name": "book", "arguments": REFERENCE["arguments"] | changes}  # type: ignore[operator]


@pytest.mark.parametrize(
    "answer",
    [
        call(),
        call(nights=2.0),
        {"tool_calls": [{"id": "1", "type": "function", "function": call()}]},
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": call()}]},
        [{"type": "function", "function": {"name": "book", "arguments": json.dumps(REFERENCE["arguments"])}}],
    ],
)
def test_the_right_call_passes_in_each_accepted_shape(judge: Any, answer: Any) -> None:
    assert judge("tool_call", REFERENCE, json.dumps(answer)).state == "passed"


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"nights": True}, "nights"),
        ({"nights": "2"}, "nights"),
        ({"breakfast": 1}, "breakfast"),
        ({"breakfast": "true"}, "breakfast"),
        ({"city": "rome"}, "city"),
        ({"tags": [None, "a"]}, "tags"),
        ({"tags": {"0": "a"}}, "tags"),
        ({"extra": 1}, "extra"),
    ],
)
def test_arguments_are_compared_by_type_and_the_wrong_one_is_named(
    judge: Any, changes: Any, argument: str
) -> None:
    verdict = judge("tool_call", REFERENCE, json.dumps(call(**changes)))

    assert verdict.state == "failed"
    assert len(verdict.reasons) == 1
    assert repr(argument) in verdict.reasons[0]
    assert 0 < verdict.score < 1


def test_a_missing_argument_is_named(judge: Any) -> None:
    verdict = judge("tool_call", {"name": "f", "arguments": {"a": 1}}, '{"name": "f", "arguments": {}}')

    assert verdict.reasons == ("Argument 'a' is missing.",)


def test_the_wrong_tool_earns_nothing(judge: Any) -> None:
    verdict = judge("tool_call", REFERENCE, json.dumps(call() | {"name": "cancel"}))

    assert verdict.score == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "book(Rome)",
        "[]",
        json.dumps([call(), call()]),
        json.dumps({"tool_calls": []}),
        json.dumps({"tool_calls": [{"function": call()}], "answer": 1}),
        json.dumps(call() | {"comment": "please"}),
        json.dumps({"name": "book"}),
        json.dumps({"name": "book", "arguments": '{"city": "Rome", "city": "Rome"}'}),
        json.dumps(call()) + json.dumps(call()),
        json.dumps({"name": ["book"], "arguments": {}}),
    ],
)
def test_no_call_several_calls_or_a_malformed_call_fail(judge: Any, answer: str) -> None:
    verdict = judge("tool_call", REFERENCE, answer)

    assert verdict.state == "failed"
    assert verdict.score == 0.0
    assert verdict.reasons
