"""The coding pack: functions, small repositories, tests and queries."""

from packs.coding.tasks import PACK

__all__ = ["PACK"]
