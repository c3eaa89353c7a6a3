"""The modelling pack: scripts that make parts and scenes, measured as meshes."""

from packs.modelling.tasks import PACK

__all__ = ["PACK"]
