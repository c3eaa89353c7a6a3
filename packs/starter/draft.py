"""What a family's module makes before it becomes a ``TaskSpec``, and the words they share.

Documents name vendors, people and e-mail addresses. People and addresses are scenery only:
no field to extract is ever one, so a text stays solvable after it was anonymized.
"""

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Draft:
    """One task in the making. ``gold`` passes the verifier; every answer in ``bad`` fails."""

    prompt: str
    verifier: str
    params: dict[str, Any]
    reference: Any
    gold: str
    bad: dict[str, str]
    layout: str
    origin: str
    tools: tuple[dict[str, Any], ...] = field(default=())


VENDORS = (
    "Norden Tools", "Blue Harbor Foods", "Alpine Paper", "Copperline Electric", "Quick Print",
    "Delta Freight", "Green Valley Farms", "Polar Cooling", "Summit Steel", "Riverside Books",
    "Orbit Software", "Pine Furniture", "Silver Cables", "Bright Cleaning", "Metro Taxi",
    "Coastal Seafood", "Urban Garden", "Granite Works", "Cedar Timber", "Velvet Textiles",
    "Rapid Courier", "Crystal Glass", "Lunar Media", "Amber Coffee",
)  # fmt: skip
FIRST_NAMES = (
    "Anna", "Omar", "Lucia", "Peter", "Mei", "Tom", "Sara", "Ivan", "Julia", "David", "Nina", "Paul",
    "Laura", "Mark", "Elena", "James", "Maria", "John", "Emma", "Carlos", "Linda", "Kevin", "Susan",
    "Robert", "Karen", "Brian", "Michael", "Jessica", "Daniel", "Amy",
)  # fmt: skip
LAST_NAMES = (
    "Berg", "Rossi", "Novak", "Weber", "Chen", "Silva", "Larsen", "Kumar", "Miller", "Johnson",
    "Moreau", "Garcia", "Smith", "Brown", "Davis", "Wilson", "Taylor", "Clark", "Lewis", "Young",
    "Walker", "Hall", "Allen", "King", "Scott", "Green", "Baker", "Adams",
)  # fmt: skip
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "SEK")
DOMAINS = ("example.com", "example.org", "example.net")
SYLLABLES = (
    "ba",
    "den",
    "kor",
    "li",
    "mar",
    "no",
    "pet",
    "ri",
    "sal",
    "tu",
    "vin",
    "wes",
    "yo",
    "zel",
    "hu",
    "fa",
)


def person(rng: random.Random) -> str:
    """A first and a last name; one in three is invented, so that readers of these texts do
    not lean on a closed list of names."""
    if rng.random() < 0.33:
        return f"{_invented(rng).title()} {_invented(rng).title()}"
    return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"


def email(rng: random.Random) -> str:
    first, last = person(rng).lower().split()
    return f"{first}.{last}@{rng.choice(DOMAINS)}"


def invoice_number(rng: random.Random) -> str:
    prefix = rng.choice(("INV-", "RE-", "F-", "BL-", "NT-"))
    return f"{prefix}{rng.randint(100, 9999)}"


def _invented(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=rng.choice((2, 3))))
