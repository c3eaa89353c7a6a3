"""The reasoning pack: more than a hundred procedural families from reasoning-gym."""

from packs.reasoning.tasks import PACK

__all__ = ["PACK"]
