"""The terms on which an external endpoint is asked: limits, patience and prices.

Owns what may be set and the sentences for what may not. Who keeps the limits is the gateway.
"""

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Self

from apps.core.errors import Refused
from apps.versions.models import Deployment

MAX_CONCURRENCY = 1024
MAX_ATTEMPTS = 20
MAX_TIMEOUT_S = 3600
MAX_DEADLINE_S = 6 * 3600  # well within the day that a run's token is good for
MAX_RATE = 1_000_000_000
MAX_PRICE = Decimal(100_000)


@dataclass(frozen=True)
class Terms:
    """Rates are per minute, prices US dollars per million tokens; None is no limit, no known price."""

    max_concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: int = 60
    deadline_s: int = 600
    max_attempts: int = 5
    input_usd_per_mtok: Decimal | None = None
    output_usd_per_mtok: Decimal | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of(cls, row: Deployment) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.names()})

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names()}


def terms_checked(terms: Terms) -> Terms:
    """``terms`` if they let something through. Raises Refused with a sentence otherwise."""
    _check_number("Requests at once", terms.max_concurrency, MAX_CONCURRENCY)
    _check_number("Attempts", terms.max_attempts, MAX_ATTEMPTS)
    _check_number("Seconds for one attempt", terms.timeout_s, MAX_TIMEOUT_S)
    _check_number("Seconds for all attempts", terms.deadline_s, MAX_DEADLINE_S)
    if terms.deadline_s < terms.timeout_s:
        raise Refused("All attempts together need at least as long as one.", code="deadline_short")
    _check_number("Requests a minute", terms.requests_per_minute, MAX_RATE)
    _check_number("Tokens a minute", terms.tokens_per_minute, MAX_RATE)
    _check_price("The price of input tokens", terms.input_usd_per_mtok)
    _check_price("The price of output tokens", terms.output_usd_per_mtok)
    return terms


def price_text(price: Decimal) -> str:
    """As people write it: at least two decimal places, no more than are needed."""
    short = f"{price:.6f}".rstrip("0")
    whole, _, rest = short.partition(".")
    return f"{whole}.{rest:0<2}"


def limits_lines(terms: Terms) -> list[str]:
    """The limits in words, one each: “16 at once”, “60 requests a minute”."""
    rates = ((terms.requests_per_minute, "requests"), (terms.tokens_per_minute, "tokens"))
    lines = [f"{value:,} {what} a minute" for value, what in rates if value is not None]
    return [f"{terms.max_concurrency:,} at once", *lines]


def prices_lines(terms: Terms) -> list[str]:
    """“$2.50 in”, “$10.00 out”; none where neither price is known."""
    prices = ((terms.input_usd_per_mtok, "in"), (terms.output_usd_per_mtok, "out"))
    return [f"${price_text(price)} {way}" for price, way in prices if price is not None]


def _check_number(what: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise Refused(f"{what}: enter a number from 1 to {most:,}.", code="limit_out_of_range")


def _check_price(what: str, value: Decimal | None) -> None:
    if value is None:
        return
    if not value.is_finite() or not 0 <= value <= MAX_PRICE:
        raise Refused(f"{what} is an amount from 0 to {MAX_PRICE:,} US dollars.", code="price_out_of_range")
    if value != value.quantize(Decimal("0.000001")):
        raise Refused(f"{what} has at most 6 decimal places.", code="price_too_fine")
