import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.verifiers.numbers import close, find_numbers, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1234.5", "1234.5"),
        ("1,234.50", "1234.5"),
        ("1.234,50", "1234.5"),
        ("1 234,50", "1234.5"),
        ("1\u00a0234,50", "1234.5"),
        ("1'234.50", "1234.5"),
        ("1\u2019234.50", "1234.5"),
        ("1,234", "1234"),
        ("1.234", "1.234"),
        ("0,125", "0.125"),
        ("1,5", "1.5"),
        ("1.234.567", "1234567"),
        ("1,234,567", "1234567"),
        ("$1,234.50", "1234.5"),
        ("1.234,50 €", "1234.5"),
        ("EUR 12.00", "12"),
        ("12.00 USD", "12"),
        ("US$ 12", "12"),
        ("-5", "-5"),
        ("\u22125", "-5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("(1,234.50)", "-1234.5"),
        ("($1,234.50)", "-1234.5"),
        ("(1.234,50 €)", "-1234.5"),
        ("12 %", "0.12"),
        ("12.5%", "0.125"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("1.5 million", "1500000"),
        ("2 bn", "2000000000"),
        ("\uff13\uff12", "32"),
    ],
)
def test_a_written_number_is_read_by_value(text: str, value: str) -> None:
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["", "abc", "1 2", "5 apples", "12.34.56", "1,23,456", "nan", "Infinity", "1e9999", "9" * 61]
)
def test_what_is_not_one_number_is_not_read(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("value", [True, False, None, float("nan"), float("inf"), [1], {"a": 1}])
def test_what_is_no_finite_number_is_not_read(value: object) -> None:
    assert parse_number(value) is None


def test_a_given_decimal_sign_decides_the_ambiguous_case() -> None:
    assert parse_number("1.234", ",") == 1234
    assert parse_number("1,234", ",") == Decimal("1.234")
    assert parse_number("1,234.5", ",") is None


def test_a_full_stop_or_comma_after_a_number_is_no_part_of_it() -> None:
    assert [found.value for found in find_numbers("It is 5, or 6.")] == [5, 6]


def test_digits_inside_words_and_dates_count_as_numbers() -> None:
    assert [found.value for found in find_numbers("INV-45")] == [45]
    assert len(find_numbers("2024-05-01")) == 3


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=2))
def test_grouped_english_and_european_text_read_back(value: Decimal) -> None:
    english = f"{value:,.2f}"
    european = english.translate(str.maketrans(",.", ".,"))

    assert parse_number(english) == value
    assert parse_number(european) == value


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    found = find_numbers(text)

    assert all(before.end <= after.end for before, after in itertools.pairwise(found))


def test_the_tolerance_includes_its_bound_exactly() -> None:
    assert close(Decimal("1.005"), Decimal(1), 0.005, 0.0)
    assert not close(Decimal("1.0051"), Decimal(1), 0.005, 0.0)
    assert close(Decimal("101"), Decimal("100"), 0.0, 0.01)
