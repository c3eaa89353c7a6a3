"""One call a turn, strictly read."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.environments.actions import Action, BadAction, parse_action
from workers.environments.protocol import Answer
from workers.environments.tool_definitions import tool

TOOLS = (
    tool("write", "Write.", path="where", content="what"),
    tool("move", "Move.", optional=("fast",), steps={"type": "integer"}, fast={"type": "boolean"}),
    tool("weigh", "Weigh.", kilos={"type": "number"}),
)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "move", "arguments": {"steps": 3}}',
        '{"name": "move", "arguments": {"steps": 3}}',
        'I go on.\n```json\n{"tool": "move", "arguments": {"steps": 3}}\n```',
        '<tool_call>\n{"name": "move", "arguments": {"steps": 3}}\n</tool_call>',
        'The set {a, b} has two: {"tool": "move", "arguments": {"steps": 3}} is next.',
    ],
)
def test_a_call_is_read_from_the_words_around_it(text: str) -> None:
    assert parse_action(Answer(text), TOOLS) == Action("move", {"steps": 3})


def test_fractions_are_floats() -> None:
    action = parse_action(Answer('{"tool": "weigh", "arguments": {"kilos": 2.5}}'), TOOLS)

    assert type(action.arguments["kilos"]) is float


def test_a_call_inside_a_text_argument_is_text() -> None:
    inner = '{"tool": "move", "arguments": {"steps": 1}}'
    text = json.dumps({"tool": "write", "arguments": {"path": "a", "content": inner}})

    assert parse_action(Answer(text), TOOLS).arguments["content"] == inner


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("I am done.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"tool": "move", "arguments": {"steps": 3}', "cannot be read"),
        ('{"tool": "move", "arguments": {"steps": 3}} {"tool": "move", "arguments": {"steps": 4}}', "2 JSON"),
        ('{"tool": "move", "arguments": {"steps": 3}} {}', "2 JSON"),
        ('{"tool": "move", "arguments": {"steps": 3, "steps": 4}}', "appears twice"),
        ('{"tool": "weigh", "arguments": {"kilos": NaN}}', "NaN"),
        ('{"tool": "weigh", "arguments": {"kilos": 1e999}}', "out of range"),
        ('{"tool": "move", "arguments": {"steps": 3}, "reward": 1}', "keys of a call"),
        ('{"tool": "move"}', "keys of a call"),
        ('{"tool": 1, "arguments": {}}', "arguments are an object"),
        ('{"tool": "move", "arguments": [3]}', "arguments are an object"),
        ('{"tool": "fly", "arguments": {}}', "There is no tool 'fly'. Tools: write, move, weigh."),
        ('{"tool": "move", "arguments": {"steps": "3"}}', "argument steps"),
        ('{"tool": "move", "arguments": {"steps": true}}', "argument steps"),
        ('{"tool": "move", "arguments": {"steps": 3, "far": 1}}', "far"),
        ('{"tool": "write", "arguments": {"path": "a"}}', "'content' is a required property"),
        ("{" * 50_000, "too many braces"),
        ('{"a":' * 20_000, "nested too deeply"),
    ],
)
def test_25_lenient_json_and_anything_else_is_no_action(text: str, why: str) -> None:
    with pytest.raises(BadAction, match=why):
        parse_action(Answer(text), TOOLS)


@pytest.mark.parametrize(
    "function",
    [
        {"name": "move", "arguments": '{"steps": 3}'},
        {"name": "move", "arguments": {"steps": 3}},
    ],
)
def test_an_openai_call_is_the_same_action(function: dict[str, Any]) -> None:
    call = {"id": "c", "type": "function", "function": function}

    assert parse_action(Answer("words", (call,)), TOOLS) == Action("move", {"steps": 3})


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"function": None},
        {"function": {"name": None, "arguments": "{}"}},
        {"function": {"name": "move", "arguments": "[3]"}},
        {"function": {"name": "move", "arguments": '{"steps": 3} 4'}},
        {"function": {"name": "weigh", "arguments": {"kilos": float("nan")}}},
    ],
)
def test_a_malformed_openai_call_is_said_to_be_wrong(call: dict[str, Any]) -> None:
    with pytest.raises(BadAction):
        parse_action(Answer("", (call,)), TOOLS)


@given(st.text(alphabet='{}[]":, \\atoolrgumens1', max_size=200))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with suppress(BadAction):
        assert parse_action(Answer(text), TOOLS).tool in ("write", "move", "weigh")
