from decimal import Decimal

import pytest

from domain.cost import cost_text, cost_usd


def test_a_cost_is_exact_in_decimals() -> None:
    cost = cost_usd(1, 3, input_usd_per_mtok=Decimal("0.1"), output_usd_per_mtok=Decimal("0.2"))

    assert cost == Decimal("0.0000007")


@pytest.mark.parametrize(("price_in", "price_out"), [(None, Decimal(1)), (Decimal(1), None), (None, None)])
def test_without_a_price_the_cost_is_unknown_and_not_zero(
    price_in: Decimal | None, price_out: Decimal | None
) -> None:
    cost = cost_usd(0, 0, input_usd_per_mtok=price_in, output_usd_per_mtok=price_out)

    assert cost is None
    assert cost_text(cost) == "unknown"


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        ("0", "$0"),
        ("1204.499", "$1,204.50"),
        ("0.01", "$0.01"),
        ("0.0031", "$0.0031"),
        ("0.0000007", "$0.00000070"),
    ],
)
def test_a_cost_reads_with_the_digits_that_count(cost: str, text: str) -> None:
    assert cost_text(Decimal(cost)) == text
