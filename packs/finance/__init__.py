"""Finance: statements, relations between figures, reconciliation, ratios, and reviews made of them."""

from packs.finance.families import PACK

__all__ = ["PACK"]
