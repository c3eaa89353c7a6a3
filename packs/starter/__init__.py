"""The starter pack: four small families that the pocket model can learn on a CPU."""

from packs.starter.tasks import PACK

__all__ = ["PACK"]
