"""The code standards pack: rules of a linter as rewards."""

from packs.code_standards.tasks import PACK

__all__ = ["PACK"]
