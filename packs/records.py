"""The last check of each task family, kept in the artifact store under a name.

One reference ``packs/checks/<family>`` points at the JSON of a ``FamilyCheck``; the last check wins.
The command line and the web pages read the same records.
"""

from collections.abc import Mapping
from typing import NamedTuple

from artifacts.store import ArtifactMissing, ArtifactStore
from domain.contracts import FamilyCheck
from packs.registry import Pack, PackFamily, packs

PREFIX = "packs/checks"


class CheckedFamily(NamedTuple):
    """An installed family and its last check; None where it was never checked."""

    pack: Pack
    family: PackFamily
    check: FamilyCheck | None


def record_check(store: ArtifactStore, check: FamilyCheck) -> None:
    """Keep ``check`` as the last one of its family."""
    store.ref_set(f"{PREFIX}/{check.name}", store.put_json(check.model_dump(mode="json")))


def last_check(store: ArtifactStore, family: str) -> FamilyCheck | None:
    """The last check of ``family``; None when there was none, or when its record is lost."""
    digest = store.ref_get(f"{PREFIX}/{family}")
    return None if digest is None else _read(store, digest)


def last_checks(store: ArtifactStore) -> dict[str, FamilyCheck]:
    """All last checks by the family's name, of packs no longer installed too."""
    found = ((name, _read(store, digest)) for name, digest in store.refs(PREFIX).items())
    return {name.removeprefix(f"{PREFIX}/"): check for name, check in found if check is not None}


def checked_families(
    store: ArtifactStore, installed: Mapping[str, Pack] | None = None
) -> list[CheckedFamily]:
    """Every family of every installed pack, in order of pack and as the pack lists them."""
    checks = last_checks(store)
    return [
        CheckedFamily(pack, family, checks.get(family.name))
        for pack in (packs() if installed is None else installed).values()
        for family in pack.families
    ]


def _read(store: ArtifactStore, digest: str) -> FamilyCheck | None:
    try:
        return FamilyCheck.model_validate(store.get_json(digest))
    except (ArtifactMissing, ValueError):
        return None
