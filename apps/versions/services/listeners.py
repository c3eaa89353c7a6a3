"""What rooms above hear about releases, inside the transaction that decides it."""

from dataclasses import dataclass

from apps.core.registries import release_listeners
from apps.versions.models import ModelVersion, Release

PROMOTED = "promoted"
ROLLED_BACK = "rolled_back"


@dataclass(frozen=True)
class ReleaseNews:
    """``version`` was promoted, or was taken off traffic. ``release`` is None for a step taken by hand."""

    version: ModelVersion
    release: Release | None


def tell(kind: str, *, version: ModelVersion, release: Release | None) -> None:
    """Call every listener with ``kind`` and the news; one that raises undoes the step."""
    for listener in release_listeners:
        listener.heard(kind, ReleaseNews(version=version, release=release))
