"""Whether the required gates let a version be released: what blocks it, and what a person has overridden.

Gates are judged elsewhere and pushed here as evidence of the kind "gate". Only a pass by the rules and
cases in force lets through; a missing, undecided or outdated answer blocks like a failed one.
"""

from typing import NamedTuple

from apps.core.registries import RequiredGate, required_gates
from apps.versions.models import Evidence, ModelVersion
from apps.versions.selectors import version_in_service

GATE, OVERRIDE = "gate", "gate_override"
_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "undecided": "is undecided",
    "unjudged": "has no answer",
    "stale": "is outdated",
}


class GateStanding(NamedTuple):
    """One required gate of a version. ``state`` is passed, failed, undecided, unjudged or stale.

    ``fingerprint`` names exactly what is known now: an override counts for that alone.
    """

    key: str
    title: str
    state: str
    finding: str
    url: str
    fingerprint: str
    overridden: Evidence | None

    @property
    def sentence(self) -> str:
        """The finding where nothing else names the gate."""
        return f"{self.title} {_WORDS[self.state]}: {self.finding}"

    @property
    def blocks(self) -> bool:
        return self.state != "passed" and self.overridden is None


def gate_standings(version: ModelVersion) -> list[GateStanding]:
    """How each required gate of the version's project stands for it."""
    required = [gate for gates in required_gates for gate in gates(version.project)]
    if not required:
        return []
    rows = list(version.evidence.filter(kind__in=(GATE, OVERRIDE)).order_by("pk"))
    serving = version_in_service(version.project)
    return [_standing(gate, version, rows, serving.pk if serving else None) for gate in required]


def gate_blockers(version: ModelVersion) -> list[GateStanding]:
    """What keeps the version from being released."""
    return [standing for standing in gate_standings(version) if standing.blocks]


def _standing(
    gate: RequiredGate, version: ModelVersion, rows: list[Evidence], serving: int | None
) -> GateStanding:
    found = [row for row in rows if row.kind == GATE and row.source == gate.key]
    override = next((row for row in rows if row.kind == OVERRIDE and row.source == gate.key), None)
    bad = next((row for row in found if row.verdict != "passed"), None)
    stale = next((row for row in found if _outdated(row, gate, serving)), None)
    if not found:
        state, url = "unjudged", gate.url
        finding = f"run its suite on {version}."
        fingerprint = f"unjudged {gate.stamp}"
    elif bad is not None:
        state, url = ("failed" if bad.verdict == "failed" else "undecided"), bad.url
        finding = bad.sentence
        fingerprint = f"{state} {bad.data.get('digest', '')}"
    elif stale is not None:
        state, url = "stale", stale.url
        finding = f"{_outdated(stale, gate, serving)} Judge it again."
        fingerprint = f"stale {stale.data.get('digest', '')} {gate.stamp} {serving}"
    else:
        state, url, finding = "passed", found[-1].url, found[-1].sentence
        fingerprint = f"passed {found[-1].data.get('digest', '')}"
    valid = override is not None and override.data.get("fingerprint") == fingerprint
    return GateStanding(gate.key, gate.title, state, finding, url, fingerprint, override if valid else None)


def _outdated(row: Evidence, gate: RequiredGate, serving: int | None) -> str:
    """Why a pass no longer counts, or nothing."""
    stamp = row.data.get("stamp", "")
    if stamp != gate.stamp:
        return f"it was passed by {stamp}; now {gate.stamp} count."
    against = row.data.get("against_version")
    if against is not None and serving is not None and against != serving:
        return "it was compared with a version that is no longer in service."
    return ""
