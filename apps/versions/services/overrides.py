"""Releasing in spite of a gate: a person's decision with a reason, kept with the version and audited."""

from apps.core.errors import Conflict
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.versions.models import ModelVersion
from apps.versions.release_gates import OVERRIDE, GateStanding, gate_blockers
from apps.versions.services.registry import evidence_record


def gates_check(*, version: ModelVersion, override: str, by: Actor) -> list[GateStanding]:
    """Refuse while a required gate has not let ``version`` through; returns what ``override`` lets pass.

    An override counts for what is known now: a later answer of the gate asks again.
    """
    blockers = gate_blockers(version)
    if not blockers:
        return []
    if not override.strip():
        more = f" ({len(blockers)} gates block in all.)" if len(blockers) > 1 else ""
        raise Conflict(
            f"{blockers[0].sentence}{more} Or give a reason to release in spite of it.",
            code="gate_blocks",
            gates=[{"title": row.title, "state": row.state, "sentence": row.sentence} for row in blockers],
        )
    by.require("release")
    return blockers


def gates_override(*, version: ModelVersion, blockers: list[GateStanding], reason: str, by: Actor) -> None:
    """Record each overridden gate; the caller holds the project's lock."""
    for blocker in blockers:
        evidence_record(
            version=version,
            kind=OVERRIDE,
            source=blocker.key,
            title=f"{blocker.title} overridden",
            sentence=f"{by.name}: {reason.strip()} (the gate was {blocker.state})",
            verdict="overridden",
            data={"fingerprint": blocker.fingerprint, "state": blocker.state, "by": by.name},
            url=blocker.url,
        )
        audit(
            actor=by,
            action="version.override_gate",
            obj=version,
            reason=reason.strip(),
            gate=blocker.title,
            state=blocker.state,
        )
