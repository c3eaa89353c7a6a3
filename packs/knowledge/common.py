"""Words, dates and people that knowledge tasks share."""

import random
from datetime import date, timedelta
from typing import Any

from packs.starter.draft import FIRST_NAMES, LAST_NAMES

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
SITES = ("Basel", "Graz", "Leeds", "Malmö", "Lyon", "Porto", "Turin", "Bergen")
PRODUCTS = ("Atlas", "Beacon", "Cobalt", "Delta", "Ember", "Falcon", "Granit", "Harbor")
PROMISES = (
    "we guarantee",
    "guaranteed",
    "we promise",
    "no risk",
    "100 % safe",
    "by tomorrow",
    "always works",
)


def full_name(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"


def names(rng: random.Random, count: int) -> list[str]:
    """Different first names, so that a first name says who is meant."""
    return [f"{first} {rng.choice(LAST_NAMES)}" for first in rng.sample(FIRST_NAMES, count)]


def day_after(rng: random.Random, day: date, low: int, high: int) -> date:
    return day + timedelta(days=rng.randint(low, high))


def spelled(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def dates(day: date) -> list[str]:
    """A day in the forms that people write it in."""
    month = MONTHS[day.month - 1]
    return [
        f"{day.day} {month}", f"{month} {day.day}", day.isoformat(), day.strftime("%d.%m.%Y"),
        f"{day.day} {month[:3]}", f"{month[:3]} {day.day}", f"{day.day}.{day.month}.{day.year}",
        f"{month} {day.day}th", f"{day.day}. {month}",
    ]  # fmt: skip


def fact(name: str, *variants: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "any": list(dict.fromkeys(variants)), **more}


def claim(name: str, *variants: str) -> dict[str, Any]:
    return {"name": name, "any": list(dict.fromkeys(variants))}


def amounts(value: int) -> list[str]:
    """A whole amount with and without separators."""
    return list(
        dict.fromkeys(
            (str(value), f"{value:,}", f"{value:,}".replace(",", "."), f"{value:,}".replace(",", "'"))
        )
    )
