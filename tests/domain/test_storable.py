"""Text that every database and every page can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.storable import storable

ANY_TEXT = st.text(st.characters(codec=None))  # halves of surrogate pairs included


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("plain", "plain"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),  # two halves that belong together
        ("héllo \U0001f600", "héllo \U0001f600"),
    ],
)
def test_what_cannot_be_stored_is_replaced_and_nothing_else(said: str, kept: str) -> None:
    assert storable(said) == kept


def test_keys_and_depths_are_reached() -> None:
    assert storable({"a\0": [("\ud800", 1, None, True, 2.5)]}) == {
        "a\ufffd": [["\ufffd", 1, None, True, 2.5]]
    }


@given(ANY_TEXT)
def test_it_is_utf_8_without_nul_and_stays_so(text: str) -> None:
    kept = storable(text)

    assert b"\0" not in kept.encode()
    assert storable(kept) == kept
