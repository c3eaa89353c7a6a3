"""Releases: starting one, and what people do to it. What the figures do to it is in ``gate``."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.permissions import Actor
from apps.core.services import alert_resolve, audit
from apps.versions.models import ModelVersion, Release
from apps.versions.plans import plan_checked
from apps.versions.selectors import (
    editions_without_engine,
    engines_without,
    has_evaluation_evidence,
    running_release,
    version_in_service,
)
from apps.versions.services.history import state_move
from apps.versions.services.locking import project_lock
from apps.versions.services.overrides import gates_check, gates_override
from apps.versions.services.routing import routing_publish
from artifacts import get_store

ROLLBACK_ALERT = "release-rolled-back"


def release_start(
    *,
    candidate: ModelVersion,
    reason: str,
    by: Actor,
    plan: Mapping[str, Any] | None = None,
    override_gates: str = "",
) -> Release:
    """Start a canary of ``candidate`` against what is in service.

    It begins warming, with no traffic, until every engine holds the adapter; then step 1 takes effect.
    Refused: no finished evaluation, another release running, already in service, adapter not loadable, a
    required gate that did not pass; ``override_gates`` is a person's reason to release in spite of that.
    """
    reason = reason_checked(reason)
    checked = plan_checked(plan, candidate.project)
    with transaction.atomic():
        project_lock(candidate.project)
        candidate = ModelVersion.objects.select_related("project", "base").get(pk=candidate.pk)
        project = candidate.project
        control = _control_for(candidate)
        _check_loadable(candidate)
        blockers = gates_check(version=candidate, override=override_gates, by=by)
        number = (Release.objects.filter(project=project).aggregate(top=Max("number"))["top"] or 0) + 1
        state_move(candidate, ModelVersion.State.CANDIDATE)
        release = Release.objects.create(
            project=project,
            candidate=candidate,
            control=control,
            number=number,
            plan=checked,
            salt=secrets.token_hex(16),
            warming=bool(engines_without(candidate)),
            reasons=["Waiting until every engine holds the adapter."],
            started_by=by.name,
            reason=reason,
        )
        if not release.warming:
            release.reasons = ["No units yet."]
            release.save(update_fields=["reasons"])
        gates_override(version=candidate, blockers=blockers, reason=override_gates, by=by)
        lineage_record(
            project=project,
            parent=Node(candidate.lineage_key, f"version {candidate}", candidate.get_absolute_url()),
            child=Node(release.lineage_key, f"release {number}", release.get_absolute_url()),
        )
        audit(actor=by, action="release.start", obj=release, reason=reason, candidate=candidate.number)
        publish(
            project=project,
            topic=release.lineage_key,
            kind="ReleaseStarted",
            release=release.pk,
            say=f"Release {number} started",
        )
        routing_publish(project=project, reason=f"Release {number} of {candidate} started", by=by)
    return release


def _control_for(candidate: ModelVersion) -> ModelVersion:
    """What is in service, after every rule that forbids a release of ``candidate`` against it."""
    running = running_release(candidate.project)
    if running is not None:
        raise Conflict(
            f"Release {running.number} of {running.candidate} is still running. Finish or abort it first.",
            code="release_running",
        )
    control = version_in_service(candidate.project)
    if control is None:
        raise Conflict(
            "No version is in service yet, so there is nothing to compare with.", code="no_control"
        )
    if control.pk == candidate.pk:
        raise Conflict(f"{candidate} is already in service.", code="already_in_service")
    if not has_evaluation_evidence(candidate):
        raise Conflict(
            f"{candidate} has no finished evaluation. Run a suite on it first.", code="evaluation_missing"
        )
    return control


def _check_loadable(candidate: ModelVersion) -> None:
    if candidate.adapter_digest and not get_store().exists(candidate.adapter_digest):
        raise Refused(
            f"The adapter of {candidate} is not in the artifact store, so no engine can load it.",
            code="adapter_missing",
        )
    unserved = editions_without_engine(candidate.project)
    if unserved:
        raise Refused(f"No engine serves the {unserved[0]} edition.", code="engine_missing")


def release_pause(*, release: Release, reason: str, by: Actor) -> Release:
    """Stop advancing; traffic stays as it is, and harm still rolls back. Idempotent."""
    return _set_paused(release, True, reason, by)


def release_resume(*, release: Release, reason: str, by: Actor) -> Release:
    """Let the gate advance again. Idempotent."""
    return _set_paused(release, False, reason, by)


def _set_paused(release: Release, paused: bool, reason: str, by: Actor) -> Release:
    word = "pause" if paused else "resume"
    with transaction.atomic():
        project_lock(release.project)
        release = _fresh(release)
        if release.state != Release.State.RUNNING:
            raise Conflict(
                f"Release {release.number} is {release.get_state_display().lower()}: nothing to {word}.",
                code="release_over",
            )
        if release.paused != paused:
            release.paused = paused
            release.save(update_fields=["paused"])
            audit(actor=by, action=f"release.{word}", obj=release, reason=reason)
            publish(
                project=release.project,
                topic=release.lineage_key,
                kind=f"Release{word.capitalize()}d",
                release=release.pk,
            )
    return release


def release_abort(*, release: Release, reason: str, by: Actor) -> Release:
    """All traffic back to the control. A release that has ended is left as it is."""
    with transaction.atomic():
        project_lock(release.project)
        release = _fresh(release)
        if release.state != Release.State.RUNNING:
            return release
        reason = reason_checked(reason)
        end_release(release, Release.State.ABORTED, reasons=[f"Aborted by {by.name}: {reason}"])
        state_move(release.candidate, ModelVersion.State.REGISTERED)
        audit(actor=by, action="release.abort", obj=release, reason=reason)
        publish(
            project=release.project,
            topic=release.lineage_key,
            kind="ReleaseAborted",
            release=release.pk,
            say=f"Release {release.number} aborted",
        )
        routing_publish(project=release.project, reason=f"Release {release.number} aborted: {reason}", by=by)
    return release


def release_acknowledge(*, release: Release, by: Actor) -> None:
    """A person has looked at a rollback; it no longer waits for one. Idempotent."""
    alert_resolve(project=release.project, key=rollback_alert_key(release))
    audit(actor=by, action="release.acknowledge", obj=release)


def rollback_alert_key(release: Release) -> str:
    return f"{ROLLBACK_ALERT}:{release.pk}"


def end_release(release: Release, state: str, *, reasons: list[str], verdict: str = "") -> None:
    """Close a running release. The caller holds the lock and publishes the routing."""
    release.state, release.finished_at, release.reasons = state, timezone.now(), reasons
    release.warming = release.paused = False
    release.verdict = verdict or release.verdict
    release.units_at_end = release.units.count()
    release.save(
        update_fields=[
            "state", "finished_at", "reasons", "warming", "paused", "verdict", "units_at_end", "evidence",
        ]
    )  # fmt: skip


def reason_checked(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise Refused("Give a reason; it goes into the audit trail.", code="reason_missing")
    return reason


def _fresh(release: Release) -> Release:
    return Release.objects.select_related("project", "candidate", "control").get(pk=release.pk)
