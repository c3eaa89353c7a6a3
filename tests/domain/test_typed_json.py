import json
import math
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import typed_json
from domain.typed_json import Unencodable, decode, encode, equal

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.complex_numbers(allow_nan=False)
)
hashables = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3)
)
values = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=4)
        | st.dictionaries(st.sampled_from(["t", "v", "x"]), inner)
    ),
    max_leaves=12,
)


@given(values)
def test_decoding_an_encoded_value_gives_an_equal_value(value: object) -> None:
    text = json.dumps(encode(value), allow_nan=False)

    assert equal(decode(json.loads(text)), value)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (True, 1),
        (0, False),
        ([1], (1,)),
        ({1}, frozenset({1})),
        ({True}, {1}),
        ({1: "a"}, {True: "a"}),
        ({"1": 2}, {1: 2}),
        ("1", 1),
        (None, 0),
        (None, False),
        (b"a", "a"),
        (math.nan, 0.0),
        ((True,), (1,)),
        ([1, 2], [2, 1]),
        ({"a": None}, {}),
    ],
)
def test_values_of_different_type_or_content_are_not_equal(a: object, b: object) -> None:
    assert not equal(a, b)
    assert not equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (math.nan, math.nan),
        ([math.nan], [math.nan]),
        ({1, 2}, {2, 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1.0: "x"}, {1: "x"}),
        (10**400, 10**400),
    ],
)
def test_values_agree_by_type_and_value(a: object, b: object) -> None:
    assert equal(a, b)


def test_a_relative_tolerance_applies_to_floats_only() -> None:
    assert equal(0.1 + 0.2, 0.3, rel=1e-9)
    assert not equal(0.1 + 0.2, 0.3)
    assert not equal(10**12, 10**12 + 1, rel=1e-9)
    assert not equal(10**400, 1.0, rel=1e-9)


def test_an_object_whose_eq_is_always_true_is_not_encodable() -> None:
    class Yes(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    with pytest.raises(Unencodable):
        encode(Yes(3))
    with pytest.raises(Unencodable):
        encode([object()])


@pytest.mark.parametrize("value", [OrderedDict(a=1), defaultdict(int, a=1), Counter("a")])
def test_dictionaries_of_collections_count_as_dict(value: object) -> None:
    assert decode(encode(value)) == {"a": 1}


def test_a_self_containing_list_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(Unencodable):
        encode(loop)


@pytest.mark.parametrize(
    "data",
    [
        {"t": "float", "v": "1.5"},
        {"t": "float", "v": 1},
        {"t": "set", "v": [[1]]},
        {"t": "dict", "v": [[1]]},
        {"t": "bytes", "v": "*"},
        {"t": "tuple", "v": "ab"},
        {"t": "complex", "v": [1]},
        {"t": "int", "v": "zz"},
    ],
)
def test_malformed_wrappers_are_refused(data: object) -> None:
    with pytest.raises(ValueError, match="malformed"):
        decode(data)


def test_deep_forged_data_is_refused_without_exhausting_the_stack() -> None:
    data: object = 1
    for _ in range(900):
        data = [data]

    with pytest.raises(ValueError, match="deeply"):
        decode(data)


def test_the_file_runs_alone_with_the_standard_library_only() -> None:
    source = Path(typed_json.__file__).read_text()

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source + "\nprint(encode((1, {2})))"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "{'t': 'tuple', 'v': [1, {'t': 'set', 'v': [2]}]}"
