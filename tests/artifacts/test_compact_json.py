"""The fast codec and the standard one agree."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.compact_json import compact_json, read_json

_TEXT = st.text(st.characters(exclude_categories=()))  # halves of surrogate pairs too
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
def test_what_is_written_reads_back_with_either_codec(value: Any) -> None:
    written = compact_json(value)

    assert json.loads(written) == value
    assert read_json(written) == value


@given(_VALUES)
def test_what_the_standard_codec_writes_is_read_as_it_reads_it(value: Any) -> None:
    written = json.dumps(value).encode()

    assert read_json(written) == json.loads(written)


def test_it_is_written_without_spaces_and_in_utf_8() -> None:
    assert compact_json({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()


@pytest.mark.parametrize("data", [b"NaN", b'{"a": Infinity}', b"[-Infinity]"])
def test_constants_are_no_json_unless_they_are_let_pass(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"NaN|Infinity"):
        read_json(data)

    assert repr(read_json(data, constants=True)) == repr(json.loads(data))


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"'a'", b'"\xff"', b'{"a":1} x', b"01"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
        read_json(data)


def test_what_pydantic_does_not_read_is_read_all_the_same() -> None:
    deep = b"[" * 250 + b"]" * 250

    assert read_json(b'"\\ud800"') == "\ud800"
    assert read_json(deep) == json.loads(deep)
    assert read_json("\ufeff[1]".encode()) == [1]


def test_what_is_nested_too_deeply_to_write_fast_is_written_all_the_same() -> None:
    deep = json.loads("[" * 300 + "]" * 300)

    assert compact_json(deep) == b"[" * 300 + b"]" * 300
