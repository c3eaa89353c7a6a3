"""The shop, help desk and calendar that support tasks happen in: their state while a case is set up."""

import random
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from packs.starter.draft import DOMAINS, FIRST_NAMES, LAST_NAMES

GOODS = (
    ("KT-20", "kettle", 2_490), ("HD-11", "headphones", 7_990), ("LM-03", "desk lamp", 3_450),
    ("BP-77", "backpack", 5_990), ("CF-08", "coffee grinder", 4_995), ("MS-15", "wireless mouse", 2_990),
    ("TN-42", "tent", 18_900), ("BK-09", "road bike", 124_000), ("CH-30", "office chair", 22_900),
    ("SP-51", "loudspeaker", 9_900), ("PR-66", "printer", 14_900), ("JK-24", "rain jacket", 8_450),
)  # fmt: skip
CARRIERS = ("DHL", "UPS", "PostNord", "DPD")
STREETS = ("Mill Lane", "Station Road", "Lindenweg", "Harbour Street", "Rue du Lac", "Bergstrasse")
CITIES = (("Basel", "4051"), ("Graz", "8010"), ("Leeds", "LS1 4AP"), ("Malmö", "21120"), ("Lyon", "69002"))


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    email: str


@dataclass
class World:
    """State of the mock services while a case is set up; ``state`` is what the task starts with."""

    now: datetime
    people: list[Person]
    policy: dict[str, str] = field(default_factory=dict)
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    tickets: dict[str, dict[str, Any]] = field(default_factory=dict)
    queues: tuple[str, ...] = ("front", "supervisors", "billing")
    calendar: dict[str, Any] | None = None

    def state(self) -> dict[str, Any]:
        customers = {one.id: {"name": one.name, "email": one.email} for one in self.people}
        parts: dict[str, Any] = {
            "now": self.now.isoformat(timespec="minutes"),
            "orders": {"policy": self.policy, "customers": customers, "orders": self.orders, "refunds": []},
            "tickets": {"tickets": self.tickets, "queues": list(self.queues)},
        }
        return parts | ({"calendar": self.calendar} if self.calendar is not None else {})


def world(rng: random.Random, *, people: int = 3) -> World:
    day = date(2026, 1, 5) + timedelta(days=rng.randrange(300))
    names = rng.sample([f"{a} {b}" for a in FIRST_NAMES for b in LAST_NAMES], people)
    customers = [
        Person(
            f"C-{rng.randint(100, 999)}{place}",
            name,
            f"{name.lower().replace(' ', '.')}@{rng.choice(DOMAINS)}",
        )
        for place, name in enumerate(names)
    ]
    return World(datetime.combine(day, time(rng.randint(8, 16), rng.choice((0, 15, 30)))), customers)


def add_order(rng: random.Random, place: World, owner: Person, **changes: Any) -> str:
    """An order of one or two items with shipping; ``changes`` override its fields."""
    items = [
        {
            "sku": sku,
            "name": name,
            "quantity": 1 if price > 9_000 else rng.choice((1, 1, 2)),
            "price": price / 100,
        }
        for sku, name, price in rng.sample(GOODS, rng.choice((1, 1, 2)))
    ]
    items = changes.pop("items", items)
    placed = changes.pop("placed_on", place.now.date() - timedelta(days=rng.randint(20, 60)))
    shipping = rng.choice((0.0, 4.9, 6.5))
    total = sum(round(item["price"] * 100) * item["quantity"] for item in items) + round(shipping * 100)
    key = f"O-{rng.randint(1_000, 9_999)}"
    while key in place.orders:
        key = f"O-{rng.randint(1_000, 9_999)}"
    place.orders[key] = {
        "customer": owner.id,
        "status": "delivered",
        "placed_on": placed.isoformat(),
        "shipped_on": (placed + timedelta(days=1)).isoformat(),
        "delivered_on": (placed + timedelta(days=4)).isoformat(),
        "items": items,
        "shipping": shipping,
        "paid": total / 100,
        "refunded": 0,
        "address": address(rng),
        **changes,
    }
    return key


def add_ticket(
    rng: random.Random, place: World, owner: Person, subject: str, text: str, **changes: Any
) -> str:
    key = f"T-{rng.randint(100, 999)}"
    while key in place.tickets:
        key = f"T-{rng.randint(100, 999)}"
    at = (place.now - timedelta(minutes=rng.randint(20, 900))).isoformat(timespec="minutes")
    place.tickets[key] = {
        "subject": subject,
        "customer": owner.id,
        "status": "open",
        "priority": "normal",
        "queue": place.queues[0],
        "tags": [],
        "messages": [{"from": "customer", "text": text, "at": at}],
        "notes": [],
        "resolution": None,
        **changes,
    }
    return key


def address(rng: random.Random) -> str:
    city, code = rng.choice(CITIES)
    return f"{rng.choice(STREETS)} {rng.randint(1, 99)}, {code} {city}"
