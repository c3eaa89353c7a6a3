from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.verifiers.dates import parse_date


@given(st.dates(min_value=date(1000, 1, 1)))
def test_every_unambiguous_notation_reads_back(day: date) -> None:
    texts = [
        day.isoformat(),
        f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.day} {day:%B} {day.year}",
        f"{day:%b} {day.day}, {day.year}",
        f"{day.year}/{day.month}/{day.day}",
    ]

    assert {parse_date(text) for text in texts} == {day}


@pytest.mark.parametrize(
    "text", ["2024-13-01", "2024-02-30", "01/05/2024", "1.5.24", "tomorrow", "", None, 20240501]
)
def test_what_is_no_date_or_two_dates_is_not_read(text: object) -> None:
    assert parse_date(text) is None


def test_slashes_are_read_where_only_one_order_is_a_date() -> None:
    assert parse_date("31/05/2024") == date(2024, 5, 31)
    assert parse_date("05/31/2024") == date(2024, 5, 31)
    assert parse_date("05/05/2024") == date(2024, 5, 5)
