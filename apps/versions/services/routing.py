"""Routing revisions: everything a gateway needs, computed from the rows, numbered, never changed.

The format is read by ``domain.routing``. A revision is written in the transaction of the change
that causes it, so that no gateway ever sees half of one.
"""

from typing import Any

from django.db import transaction

from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.versions.models import (
    Deployment,
    EditionKind,
    ModelVersion,
    Release,
    RoutingRevision,
    RoutingRules,
)
from apps.versions.services.locking import project_lock

FAILURE_SIGNALS = ("error", "negative_feedback", "correction", "verifier")


def routing_publish(*, project: Project, reason: str, by: Actor) -> RoutingRevision | None:
    """Write the next revision if anything a gateway sees has changed; returns the current one.

    None while no version is in service: there is nothing to route to.
    """
    with transaction.atomic():
        project_lock(project)
        content = _snapshot(project)
        latest = RoutingRevision.objects.filter(project=project).first()
        if content is None:
            return latest
        if latest is not None and {k: v for k, v in latest.snapshot.items() if k != "revision"} == content:
            return latest
        number = latest.number + 1 if latest else 1
        revision = RoutingRevision.objects.create(
            project=project,
            number=number,
            snapshot={"revision": number, **content},
            actor=by.name,
            reason=reason,
        )
        publish(project=project, topic="versions.routing", kind="RoutingPublished", revision=number)
    return revision


def routing_change(
    *,
    project: Project,
    by: Actor,
    reason: str = "",
    task_types: dict[str, str] | None = None,
    default_edition: str | None = None,
    capture_failures: bool | None = None,
    capture_success_rate: float | None = None,
    failure_signals: list[str] | None = None,
) -> RoutingRevision | None:
    """Change what is not None and publish. A running release keeps the failure signals of its plan."""
    with transaction.atomic():
        project_lock(project)
        rules, _ = RoutingRules.objects.get_or_create(project=project)
        if task_types is not None:
            rules.task_types = _checked_task_types(task_types)
        if default_edition is not None:
            rules.default_edition = _checked_edition(default_edition)
        if capture_failures is not None:
            rules.capture_failures = capture_failures
        if capture_success_rate is not None:
            if not 0.0 <= capture_success_rate <= 1.0:
                raise Refused("The capture rate is a share between 0 and 1.", code="capture_rate")
            rules.capture_success_rate = capture_success_rate
        if failure_signals is not None:
            rules.failure_signals = checked_signals(failure_signals)
        rules.save()
        before = RoutingRevision.objects.filter(project=project).first()
        revision = routing_publish(project=project, reason=reason or "Routing rules changed", by=by)
        if revision != before:
            audit(actor=by, action="routing.change", obj=revision, reason=reason)
    return revision


def checked_signals(signals: list[str]) -> list[str]:
    """The signals in their usual order, once each; refused if one is unknown or none is left."""
    unknown = [signal for signal in signals if signal not in FAILURE_SIGNALS]
    if unknown:
        raise Refused(
            f"“{unknown[0]}” is not a failure signal. Choose from {', '.join(FAILURE_SIGNALS)}.",
            code="signal_unknown",
        )
    if not signals:
        raise Refused("Choose at least one signal that counts as a failure.", code="signal_missing")
    return [signal for signal in FAILURE_SIGNALS if signal in signals]


def _checked_task_types(task_types: dict[str, str]) -> dict[str, str]:
    for name, edition in task_types.items():
        if not name.replace("_", "").isalnum() or len(name) > 40:
            raise Refused(
                f"“{name[:40]}” cannot name a task type: letters, digits and underscores only.",
                code="task_type_name",
            )
        _checked_edition(edition)
    if not task_types:
        raise Refused("Keep at least one task type.", code="task_type_missing")
    return dict(task_types)


def _checked_edition(edition: str) -> str:
    if edition not in EditionKind.values:
        raise Refused(
            f"“{edition}” is not an edition. Choose {' or '.join(EditionKind.values)}.",
            code="edition_unknown",
        )
    return edition


def _snapshot(project: Project) -> dict[str, Any] | None:
    versions = ModelVersion.objects.select_related("base")
    control = versions.filter(project=project, state=ModelVersion.State.IN_SERVICE).first()
    if control is None:
        return None
    release = (
        Release.objects.filter(project=project, state=Release.State.RUNNING)
        .select_related("candidate__base")
        .first()
    )
    routed = release if release is not None and release.weight > 0 else None
    rules = RoutingRules.objects.filter(project=project).first() or RoutingRules(project=project)
    editions: dict[str, list[dict[str, Any]]] = {kind: [] for kind in EditionKind.values}
    externals: dict[str, dict[str, Any]] = {}
    for row in Deployment.objects.filter(project=project).in_use().order_by("pk"):
        address = {"deployment_id": row.pk, "base_url": row.base_url}
        if row.kind == Deployment.Kind.ENGINE:
            editions[row.edition_kind].append(address)
        else:
            externals[row.name] = {**address, "model": row.model}
    return {
        "project": project.slug,
        "project_id": project.pk,
        "arms": {"control": _arm(control), "canary": _arm(routed.candidate) if routed else None},
        "release": {
            "id": routed.pk,
            "number": routed.number,
            "salt": routed.salt,
            "weight": routed.weight,
            "segment": routed.segment,
        }
        if routed
        else None,
        "editions": editions,
        "externals": externals,
        "task_types": rules.task_types,
        "default_edition": str(rules.default_edition),
        "capture": {"failures": rules.capture_failures, "success_rate": rules.capture_success_rate},
        "failure_signals": routed.plan["failure_signals"] if routed else rules.failure_signals,
    }


def _arm(version: ModelVersion) -> dict[str, Any]:
    return {
        "version_id": version.pk,
        "version": version.number,
        "model": version.engine_model,
        "adapter_digest": version.adapter_digest,
    }
