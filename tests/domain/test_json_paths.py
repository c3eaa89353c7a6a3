import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_paths import MISSING, at, covers, differences, parts_of, written

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", {"a": [1, {"b/c": 2}], "d": None}),
        ("/a/0", 1),
        ("/a/-1/b~1c", 2),
        ("/d", None),
        ("/x", MISSING),
        ("/a/2", MISSING),
        ("/a/-3", MISSING),
        ("/a/x", MISSING),
        ("/d/x", MISSING),
    ],
)
def test_values_are_found_by_their_path(path: str, value: Any) -> None:
    assert at({"a": [1, {"b/c": 2}], "d": None}, path) == value


def test_a_path_starts_with_a_slash() -> None:
    with pytest.raises(ValueError, match="starts with /"):
        parts_of("a/b")


@given(st.lists(st.text(max_size=4), max_size=4))
def test_a_path_reads_as_it_was_written(parts: list[str]) -> None:
    assert parts_of(written(parts)) == tuple(parts)


@given(JSON)
def test_a_value_does_not_differ_from_its_copy(value: Any) -> None:
    assert list(differences(value, copy.deepcopy(value))) == []


@given(JSON, JSON)
def test_every_difference_is_one(before: Any, after: Any) -> None:
    for parts, _ in differences(before, after):
        old, new = at(before, written(parts)), at(after, written(parts))
        assert type(old) is not type(new) or old != new


@given(JSON, JSON)
def test_values_without_a_difference_are_equal(before: Any, after: Any) -> None:
    if not list(differences(before, after)):
        assert before == after


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [("/a", True), ("/a/*/c", True), ("/a/-1", True), ("/a/1/c", True), ("/a/0", False), ("/a/1/c/d", False)],
)
def test_a_pattern_covers_its_place_and_all_below(pattern: str, covered: bool) -> None:
    assert covers(pattern, ("a", "1", "c"), (None, 2, None)) is covered
