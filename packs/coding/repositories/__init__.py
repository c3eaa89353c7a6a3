"""Small repositories that work, each with constants of its own and bugs that can be planted."""

from collections.abc import Callable
from random import Random

from packs.coding.repositories import grades, ledger, library, planner, search, shop, sizes, stock
from packs.coding.repositories.repository import Bug, Check, Repository

REPOSITORIES: dict[str, Callable[[Random], Repository]] = {
    "shop": shop.make,
    "ledger": ledger.make,
    "library": library.make,
    "planner": planner.make,
    "search": search.make,
    "stock": stock.make,
    "grades": grades.make,
    "sizes": sizes.make,
}

__all__ = ["REPOSITORIES", "Bug", "Check", "Repository"]
