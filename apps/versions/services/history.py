"""Putting a version into service: the one place where the served version changes."""

from apps.core.errors import Conflict
from apps.core.permissions import Actor
from apps.versions.models import ModelVersion, Release, ServiceChange
from domain.lifecycle import IllegalMove, check_move


def put_in_service(
    *,
    version: ModelVersion,
    previous: ModelVersion | None,
    kind: str,
    reason: str,
    by: Actor,
    release: Release | None = None,
    without_evidence: bool = False,
) -> ServiceChange:
    """``version`` serves, ``previous`` is retired. The caller holds the lock and publishes routing."""
    if previous is not None:
        # First out, then in: the database allows one version in service at any time.
        state_move(previous, ModelVersion.State.RETIRED)
    state_move(version, ModelVersion.State.IN_SERVICE)
    return ServiceChange.objects.create(
        project=version.project,
        kind=kind,
        version=version,
        previous=previous,
        release=release,
        without_evidence=without_evidence,
        actor=by.name,
        reason=reason,
    )


def state_move(version: ModelVersion, state: str) -> None:
    """Move if legal; raises Conflict with a sentence if not."""
    try:
        check_move("version", version.state, state)
    except IllegalMove as error:
        raise Conflict(f"{version}: {error}", code="illegal_move") from None
    version.state = state
    version.save(update_fields=["state"])
