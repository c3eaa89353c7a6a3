"""Promoting and rolling back by hand: one atomic write each, with a reason."""

from django.db import transaction

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.versions.models import ModelVersion, Release, ServiceChange
from apps.versions.selectors import (
    has_evaluation_evidence,
    rollback_target,
    running_release,
    version_in_service,
)
from apps.versions.services.engines import version_load
from apps.versions.services.history import put_in_service
from apps.versions.services.listeners import PROMOTED, ROLLED_BACK, tell
from apps.versions.services.locking import project_lock
from apps.versions.services.overrides import gates_check, gates_override
from apps.versions.services.releases import end_release, reason_checked, release_abort
from apps.versions.services.routing import routing_publish


def version_promote(
    *,
    version: ModelVersion,
    reason: str,
    by: Actor,
    without_evidence: bool = False,
    override_gates: str = "",
) -> ModelVersion:
    """Put ``version`` into service at once, for all traffic. Idempotent.

    Needs a finished evaluation; ``without_evidence`` says knowingly that there is none, and is
    recorded. Needs every required gate too; ``override_gates`` is a person's reason to go without. Every
    engine must hold the adapter first: it is loaded here if it is not. A running release of this version
    ends promoted; one of another version refuses.
    """
    reason = reason_checked(reason)
    if ModelVersion.objects.filter(pk=version.pk, state=ModelVersion.State.IN_SERVICE).exists():
        return version
    _check_promotable(version, without_evidence)
    gates_check(version=version, override=override_gates, by=by)
    problems = version_load(version)
    if problems:
        raise Refused(f"{version} cannot take all traffic yet. {' '.join(problems)}", code="not_loaded")
    with transaction.atomic():
        project_lock(version.project)
        version = ModelVersion.objects.select_related("project", "base").get(pk=version.pk)
        if version.state == ModelVersion.State.IN_SERVICE:
            return version
        _check_promotable(version, without_evidence)
        blockers = gates_check(version=version, override=override_gates, by=by)
        gates_override(version=version, blockers=blockers, reason=override_gates, by=by)
        previous = version_in_service(version.project)
        release = running_release(version.project)
        if release is not None:
            end_release(release, Release.State.PROMOTED, reasons=[f"Promoted by {by.name}: {reason}"])
        evaluated = has_evaluation_evidence(version)
        put_in_service(
            version=version,
            previous=previous,
            kind=ServiceChange.Kind.PROMOTE,
            reason=reason,
            by=by,
            release=release,
            without_evidence=not evaluated,
        )
        audit(
            actor=by,
            action="version.promote",
            obj=version,
            reason=reason,
            without_evidence=not evaluated,
            previous=previous.number if previous else "",
        )
        _say(version, "VersionPromoted", f"{version} is in service")
        routing_publish(project=version.project, reason=f"{version} promoted: {reason}", by=by)
        tell(PROMOTED, version=version, release=release)
    return version


def _check_promotable(version: ModelVersion, without_evidence: bool) -> None:
    release = running_release(version.project)
    if release is not None and release.candidate_id != version.pk:
        raise Conflict(
            f"Release {release.number} of {release.candidate} is running. Abort it first.",
            code="release_running",
        )
    if not without_evidence and not has_evaluation_evidence(version):
        raise Conflict(
            f"{version} has no finished evaluation. Run a suite on it, or say that you promote it without.",
            code="evaluation_missing",
        )


def version_roll_back(*, project: Project, reason: str, by: Actor) -> ModelVersion:
    """Put the previous version back into service and abort a running release; returns what serves now.

    Needs no analysis and asks no engine: the target is kept loaded. Rolling back twice goes back once;
    to go further, promote an older version.
    """
    reason = reason_checked(reason)
    with transaction.atomic():
        project_lock(project)
        current = version_in_service(project)
        if current is None:
            raise Conflict("No version is in service yet.", code="nothing_in_service")
        release = running_release(project)
        if release is not None:
            release_abort(release=release, reason=reason, by=by)
        target = rollback_target(project)
        if target is None:
            if release is None and not _just_rolled_back(project):
                raise Conflict("There is no earlier version to go back to.", code="no_earlier_version")
            return current
        put_in_service(
            version=target, previous=current, kind=ServiceChange.Kind.ROLL_BACK, reason=reason, by=by
        )
        audit(actor=by, action="version.roll_back", obj=current, reason=reason, target=target.number)
        _say(current, "VersionRolledBack", f"Rolled back to {target}")
        routing_publish(project=project, reason=f"Rolled back from {current} to {target}: {reason}", by=by)
        tell(ROLLED_BACK, version=current, release=None)
    return target


def _just_rolled_back(project: Project) -> bool:
    change = ServiceChange.objects.filter(project=project).first()
    return change is not None and change.kind == ServiceChange.Kind.ROLL_BACK


def _say(version: ModelVersion, kind: str, say: str) -> None:
    publish(project=version.project, topic=version.lineage_key, kind=kind, version=version.number, say=say)
