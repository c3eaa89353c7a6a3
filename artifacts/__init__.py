"""Content-addressed bytes on fsspec: the only thing besides messages that apps and workers share."""

from artifacts.jsontext import json_bytes
from artifacts.scratch import Scratch
from artifacts.store import ArtifactMissing, ArtifactStore, get_store

__all__ = ["ArtifactMissing", "ArtifactStore", "Scratch", "get_store", "json_bytes"]
