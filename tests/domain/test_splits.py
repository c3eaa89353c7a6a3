import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.splits import split_of


@given(st.text(min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_a_source_keeps_its_side_and_a_larger_share_only_adds_to_the_held_out(
    source: str, first: float, second: float
) -> None:
    low, high = sorted((first, second))

    if split_of(source, low) == "heldout":
        assert split_of(source, high) == "heldout"


def test_the_share_is_kept() -> None:
    held = sum(split_of(f"document-{n}") == "heldout" for n in range(10_000))

    assert held / 10_000 == pytest.approx(0.2, abs=0.015)


def test_the_side_of_a_source_is_fixed_for_ever() -> None:
    sides = "".join(split_of(f"document-{n}", 0.5)[0] for n in range(12))

    assert sides == "hthththhthth"


@pytest.mark.parametrize(("source", "share"), [("", 0.2), ("a", 1.2)])
def test_a_split_needs_a_source_and_a_share(source: str, share: float) -> None:
    with pytest.raises(ValueError, match=r"split|share"):
        split_of(source, share)
