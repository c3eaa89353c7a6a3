import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_text import map_json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
documents = st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3)


def upper(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: upper(item) for key, item in value.items()}
    if isinstance(value, list):
        return [upper(item) for item in value]
    return f"{value}!" if isinstance(value, str) else value


@given(documents, st.sampled_from([None, 2]))
def test_without_a_change_the_text_stays_as_it_is(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)

    assert map_json_text(text, lambda key: key, lambda field, leaf: leaf) == text


@given(documents)
def test_every_string_value_is_reached_and_keys_are_not(value: Any) -> None:
    changed = map_json_text(json.dumps(value), lambda key: key, lambda field, leaf: upper(leaf))

    assert changed is not None
    assert json.loads(changed) == upper(value)


def test_values_come_with_their_field() -> None:
    seen: list[Any] = []

    map_json_text(
        '{"a": "x", "b": {"c": ["y", 5]}, "d": 1.5, "e": "z"}',
        lambda key: key,
        lambda field, leaf: seen.append((field, leaf)),
    )

    assert seen == [("a", "x"), ("c", "y"), ("c", 5), ("e", "z")]


def test_a_duplicate_key_hides_no_value() -> None:
    changed = map_json_text('{"a": "secret", "a": "x"}', lambda key: key, lambda field, leaf: "-")

    assert changed == '{"a": "-", "a": "-"}'


@pytest.mark.parametrize("text", ["", "hello", "{", '"text"', "12", "{not json}", "[" * 5000])
def test_what_is_no_object_or_array_is_no_json_text(text: str) -> None:
    assert map_json_text(text, lambda key: key, lambda field, leaf: leaf) is None
