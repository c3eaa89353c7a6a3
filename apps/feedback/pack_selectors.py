"""Reads of installed packs: their families, the last check of each, and what the project has of them."""

from datetime import datetime
from typing import Any, NamedTuple

from apps.core.models import Project
from apps.feedback.models import Family
from artifacts import get_store
from domain.contracts import FamilyCheck
from packs.records import checked_families
from packs.registry import Pack, PackFamily

STATES = ("sound", "unsound", "unchecked")


class PackRow(NamedTuple):
    """One installed family. ``added`` is it in this project; ``state`` is one of ``STATES``."""

    pack: Pack
    family: PackFamily
    check: FamilyCheck | None
    added: Family | None

    @property
    def checked_at(self) -> datetime | None:
        return datetime.fromisoformat(self.check.checked_at) if self.check and self.check.checked_at else None

    @property
    def environment_words(self) -> str:
        return self.family.environment.replace("_", " ")

    @property
    def verifier_words(self) -> str:
        return ", ".join(kind.replace("_", " ") for kind in self.family.verifier_kinds)

    @property
    def state(self) -> str:
        if self.check is None:
            return "unchecked"
        return "sound" if is_sound(self.check) else "unsound"


def is_sound(check: FamilyCheck) -> bool:
    """Every good answer passed, nothing else did, and nothing was left unjudged."""
    only_impossible = check.gold_pass is None and check.tasks > 0
    good = check.gold_pass == 1.0 or only_impossible
    return good and not check.noop_pass and not check.bad_pass and not check.errors


def pack_rows(
    project: Project, *, q: str = "", pack: str = "", kind: str = "", environment: str = "", state: str = ""
) -> list[PackRow]:
    """Families of all installed packs in order of pack; one query and one reading of the records."""
    added = {family.name: family for family in Family.objects.filter(project=project).exclude(pack="")}
    rows = [
        PackRow(found.pack, found.family, found.check, added.get(found.family.name))
        for found in checked_families(get_store())
    ]
    words = q.casefold().strip()
    return [
        row
        for row in rows
        if (not pack or row.pack.name == pack)
        and (not kind or kind in row.family.verifier_kinds)
        and (not environment or row.family.environment == environment)
        and (not state or state in (row.state, "added" if row.added else "not_added"))
        and (
            not words or words in f"{row.family.name} {row.family.title} {row.family.description}".casefold()
        )
    ]


def packs_of(project: Project) -> list[dict[str, Any]]:
    """Packs with their families, for the API."""
    packs: dict[str, dict[str, Any]] = {}
    for row in pack_rows(project):
        pack = packs.setdefault(
            row.pack.name,
            {
                "name": row.pack.name,
                "title": row.pack.title,
                "description": row.pack.description,
                "families": [],
            },
        )
        pack["families"].append(
            {
                "name": row.family.name,
                "title": row.family.title,
                "description": row.family.description,
                "verifier_kinds": list(row.family.verifier_kinds),
                "environment": row.family.environment,
                "parts": list(row.family.parts),
                "check": row.check,
                "family": row.added.pk if row.added else None,
            }
        )
    return list(packs.values())
