"""How documents write figures: separators, negatives, units, currencies, dates; and who writes them."""

import json
import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from packs.starter.draft import VENDORS

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LEGAL_FORMS = ("AG", "GmbH", "Ltd", "Inc.", "SA", "AB", "BV", "plc")
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "SEK")


@dataclass(frozen=True)
class Style:
    """``thousands`` and ``decimal`` are the separators, ``negative`` "minus" or "parentheses"."""

    name: str
    thousands: str
    decimal: str
    negative: str = "minus"

    def write(self, value: int, decimals: int = 0) -> str:
        """``value`` in the smallest unit: 123450 with two decimals is 1,234.50."""
        whole, fraction = divmod(abs(value), 10**decimals)
        text = f"{whole:,}".replace(",", self.thousands)
        if decimals:
            text += f"{self.decimal}{fraction:0{decimals}}"
        if value >= 0:
            return text
        return f"({text})" if self.negative == "parentheses" else f"-{text}"


@dataclass(frozen=True)
class Unit:
    """``factor`` turns a printed figure into full units of the currency; ``label`` has a place for it."""

    factor: int
    label: str

    def said(self, currency: str) -> str:
        return self.label.replace("CUR", currency)


STYLES = (
    Style("us", ",", "."), Style("us", ",", ".", "parentheses"),
    Style("european", ".", ","), Style("european", ".", ",", "parentheses"),
    Style("swiss", "'", "."), Style("swiss", "'", ".", "parentheses"),
    Style("spaced", " ", ","),
)  # fmt: skip
UNITS = (
    Unit(1, "in CUR"), Unit(1, "amounts in CUR"), Unit(1_000, "in thousands of CUR"), Unit(1_000, "CUR '000"),
    Unit(1_000, "in CUR thousand"), Unit(1_000_000, "in millions of CUR"), Unit(1_000_000, "CUR million"),
)  # fmt: skip


def company(rng: random.Random) -> str:
    return f"{rng.choice(VENDORS)} {rng.choice(LEGAL_FORMS)}"


def day_in(rng: random.Random, year: int) -> date:
    return date(year, 1, 1) + timedelta(days=rng.randrange(365))


def write_date(day: date, form: str) -> str:
    """``form``: iso, dotted (day first), spelled, slashed (month first)."""
    if form == "iso":
        return day.isoformat()
    if form == "dotted":
        return day.strftime("%d.%m.%Y")
    if form == "slashed":
        return day.strftime("%m/%d/%Y")
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def cents(value: int) -> float:
    """Hundredths as an amount."""
    return value / 100


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def misprinted(rng: random.Random, value: int) -> int:
    """``value`` as a tired clerk types it: two digits swapped, one lost or doubled, or one off."""
    text = str(abs(value))
    swaps = [i for i in range(len(text) - 1) if text[i] != text[i + 1] and not (i == 0 and text[1] == "0")]
    ways = [text[:-1] + str((int(text[-1]) + rng.randint(1, 9)) % 10)]
    if swaps:
        i = rng.choice(swaps)
        ways.append(text[:i] + text[i + 1] + text[i] + text[i + 2 :])
    if len(text) > 2:
        i = rng.randrange(1, len(text))
        ways += [text[:i] + text[i + 1 :], text[:i] + text[i] + text[i:]]
    wrong = int(rng.choice(ways)) * (-1 if value < 0 else 1)
    return wrong if wrong != value else value + rng.choice((-1, 1)) * 10
