"""What a refund case is set in: the shop's policy of this task, the order, the item."""

import random
from dataclasses import dataclass
from typing import Any

from packs.support.world import Person, World

CODES = "refunded, partly_refunded, replaced, refused, duplicate"


@dataclass(frozen=True)
class Terms:
    """The shop's policy of this task; amounts in cents."""

    window: int  # days after delivery
    fee: int  # per cent, for opened goods
    limit: int  # refunds above it go to the supervisors
    final: str  # goods that cannot be returned

    def said(self) -> dict[str, str]:
        return {
            "returns": (
                f"Goods can be returned within {self.window} days after delivery. Unopened: the price of the "
                f"item. Opened: the price less a restocking fee of {self.fee} %. Shipping is not refunded. "
                f"Final sale, never returned: {self.final}."
            ),
            "damage": (
                "Goods that arrive damaged are replaced when the customer asks for a replacement; otherwise "
                "the price of the item is refunded in full. Return window and final sale do not matter then."
            ),
            "limits": (
                f"A refund above {self.limit / 100:.2f} is decided by the supervisors: do not refund, move "
                "the ticket to the queue supervisors with priority high, leave it open and tell the customer."
            ),
            "closing": (
                "Reply before closing. Name the order and the amount of a refund. When refusing, name the "
                f"rule. Never promise a date. Resolution codes: {CODES}."
            ),
        }


@dataclass(frozen=True)
class Setting:
    place: World
    terms: Terms
    owner: Person
    order: str
    item: dict[str, Any]
    rng: random.Random

    @property
    def price(self) -> int:
        """Of the item in cents, all its pieces."""
        return int(round(self.item["price"] * 100) * self.item["quantity"])

    @property
    def record(self) -> dict[str, Any]:
        return self.place.orders[self.order]
