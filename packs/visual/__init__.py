"""Pictures: charts, screens and drawings made here, so that every answer is known."""

from packs.visual.families import PACK

__all__ = ["PACK"]
