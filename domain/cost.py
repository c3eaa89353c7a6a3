"""What tokens cost, in exact decimals. An unknown price makes an unknown cost, never 0."""

from decimal import Decimal

MILLION = Decimal(1_000_000)
CENT = Decimal("0.01")


def cost_usd(
    prompt_tokens: int,
    completion_tokens: int,
    *,
    input_usd_per_mtok: Decimal | None,
    output_usd_per_mtok: Decimal | None,
) -> Decimal | None:
    """Prices are USD per million tokens; None where a price that is needed is unknown."""
    total = Decimal(0)
    for tokens, price in ((prompt_tokens, input_usd_per_mtok), (completion_tokens, output_usd_per_mtok)):
        if price is None:
            return None
        total += tokens * price / MILLION
    return total


def cost_text(cost: Decimal | None) -> str:
    """``$1,204.50``, ``$0.0031`` (two digits that count, under a cent), ``$0`` or ``unknown``."""
    if cost is None:
        return "unknown"
    if cost == 0:
        return "$0"
    if cost >= CENT:
        return f"${cost.quantize(CENT):,}"
    places = -cost.adjusted() + 1
    return f"${cost:.{places}f}"
