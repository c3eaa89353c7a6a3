"""Support: tickets worked on with tools, under a policy."""

from packs.support.families import PACK

__all__ = ["PACK"]
