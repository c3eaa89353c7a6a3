"""Reads of versions: what serves, what is released, where to send a request."""

import hashlib
import json
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, F, Prefetch, Q, QuerySet

from apps.core.crypto import decrypt_bytes
from apps.core.errors import Refused
from apps.core.models import Project
from apps.core.registries import routing_lags
from apps.versions.models import (
    EVALUATION_KINDS,
    Deployment,
    EditionKind,
    Evidence,
    ModelVersion,
    Release,
    ReleaseUnit,
    RoutingRevision,
    ServiceChange,
)
from apps.versions.tokens import make_run_token
from domain.contracts import EngineTarget


def version_in_service(project: Project) -> ModelVersion | None:
    return (
        ModelVersion.objects.select_related("base")
        .filter(project=project, state=ModelVersion.State.IN_SERVICE)
        .first()
    )


def rollback_target(project: Project) -> ModelVersion | None:
    """The version to go back to: the one that the last promotion replaced.

    None after a rollback: going back twice by pressing twice would overshoot.
    """
    change = _last_change(project)
    if change is None or change.kind != ServiceChange.Kind.PROMOTE:
        return None
    return change.previous


def _last_change(project: Project) -> ServiceChange | None:
    return ServiceChange.objects.select_related("previous__base").filter(project=project).first()


def running_release(project: Project) -> Release | None:
    return (
        Release.objects.select_related("candidate__base", "control__base")
        .filter(project=project, state=Release.State.RUNNING)
        .first()
    )


def versions_to_keep_loaded(project: Project) -> list[ModelVersion]:
    """What every engine must hold: in service, the running candidate, and the way back."""
    release = running_release(project)
    wanted = [version_in_service(project), rollback_target(project)]
    if release is not None:
        wanted += [release.candidate, release.control]
    return list({version.pk: version for version in wanted if version is not None}.values())


def engines_without(version: ModelVersion) -> list[Deployment]:
    """Engines that do not hold ``version`` now, or do not answer."""
    return [
        row
        for row in Deployment.objects.filter(project=version.project_id).engines()
        if not row.healthy or version.engine_model not in row.loaded
    ]


class TakenBack(NamedTuple):
    """One time that a version had to give its traffic back."""

    at: datetime
    words: str
    why: str
    url: str


def times_taken_back(version: ModelVersion) -> list[TakenBack]:
    """When ``version`` was rolled back or its release aborted, and why; newest first."""
    ended = version.releases.filter(state__in=[Release.State.ROLLED_BACK, Release.State.ABORTED])
    changes = ServiceChange.objects.filter(previous=version, kind=ServiceChange.Kind.ROLL_BACK)
    found = [
        TakenBack(
            release.finished_at or release.created_at,
            f"{release.get_state_display().lower()} in release {release.number}",
            " ".join(release.reasons),
            release.get_absolute_url(),
        )
        for release in ended
    ]
    found += [
        TakenBack(change.created_at, f"rolled back from service by {change.actor}", change.reason, "")
        for change in changes
    ]
    return sorted(found, reverse=True)


def editions_without_engine(project: Project) -> list[str]:
    served = set(project.deployments.engines().values_list("edition_kind", flat=True))
    return [EditionKind(kind).label.lower() for kind in EditionKind.values if kind not in served]


def has_evaluation_evidence(version: ModelVersion) -> bool:
    return version.evidence.filter(kind__in=EVALUATION_KINDS).exclude(verdict="no_data").exists()


def engine_target(version: ModelVersion, edition_kind: str) -> EngineTarget:
    """One of our engines that serves this edition, a healthy one first. Refused if there is none."""
    engines = Deployment.objects.filter(project=version.project_id, edition_kind=edition_kind).engines()
    row = engines.order_by(F("healthy").desc(nulls_last=True), "pk").first()
    if row is None:
        raise Refused(
            f"No engine serves the {edition_kind.replace('_', '-')} edition.", code="engine_missing"
        )
    return EngineTarget(
        base_url=row.base_url,
        model=version.engine_model,
        adapter_digest=version.adapter_digest,
        protocol="tokens",
        identity=_identity(
            row.base_url,
            version.engine_model,
            version.adapter_digest,
            version.base.digest,
            edition_kind,
            list(version.editions.filter(kind=edition_kind).values_list("profile", flat=True)),
        ),
    )


def external_target(deployment: Deployment, scope: str) -> EngineTarget:
    """An external endpoint on its terms, through our own gateway, with a token for run ``scope`` and this
    endpoint only."""
    if deployment.kind != Deployment.Kind.EXTERNAL or deployment.retired_at is not None:
        raise Refused(f"{deployment.name} is not an external endpoint in use.", code="endpoint_unusable")
    return EngineTarget(
        base_url=settings.BASE_URL,
        model=f"endpoint:{deployment.name}",
        token=make_run_token(project_id=deployment.project_id, deployment_id=deployment.pk, scope=scope),
        protocol="chat",
        identity=_identity(deployment.pk, deployment.base_url, deployment.model),
        timeout_s=deployment.timeout_s,
        deadline_s=deployment.deadline_s,
        max_attempts=deployment.max_attempts,
        max_concurrency=deployment.max_concurrency,
        requests_per_minute=deployment.requests_per_minute,
        tokens_per_minute=deployment.tokens_per_minute,
        native_tools=True,
    )


def _identity(*parts: Any) -> str:
    """A digest of what a target answers by; a changed address, model or weight makes another."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def judge_targets(project: Project, scope: str) -> dict[str, EngineTarget]:
    """External endpoints as judges, by the names that verifiers call; "" is the first by name. Each is
    reached through our gateway with a token for run ``scope``; a project without endpoints has none."""
    rows = Deployment.objects.filter(project=project).externals().order_by("name")
    named = {row.name: external_target(row, scope) for row in rows}
    return {"": next(iter(named.values())), **named} if named else {}


def deployment_key(deployment: Deployment) -> str:
    """The endpoint's key in clear, empty if it needs none. For the process that calls it, nothing else."""
    return decrypt_bytes(bytes(deployment.api_key)).decode() if deployment.api_key else ""


def routing_current(project: Project) -> RoutingRevision | None:
    return RoutingRevision.objects.filter(project=project).first()


def gateways_behind(project: Project) -> list[str]:
    """Gateway processes that do not serve by the newest revision yet."""
    revision = routing_current(project)
    if revision is None:
        return []
    return [name for lag in routing_lags for name in lag(project, revision.number)]


def versions_of(project: Project) -> QuerySet[ModelVersion]:
    """For lists: newest number first, with base, parent and evidence at hand."""
    return (
        ModelVersion.objects.filter(project=project)
        .select_related("base", "parent")
        .prefetch_related(Prefetch("evidence", queryset=Evidence.objects.order_by("-pk")))
        .annotate(release_count=Count("releases", distinct=True))
        .order_by("-major", "-minor")
    )


def unit_counts(release: Release) -> dict[int, dict[str, tuple[int, int]]]:
    """``{segment: {arm: (units, failed units)}}`` in one grouped query."""
    rows = (
        ReleaseUnit.objects.filter(release=release)
        .values("segment", "arm")
        .annotate(n=Count("pk"), bad=Count("pk", filter=Q(failed=True)))
        .order_by("segment", "arm")
    )
    counts: dict[int, dict[str, tuple[int, int]]] = {}
    for row in rows:
        counts.setdefault(row["segment"], {})[row["arm"]] = (row["n"], row["bad"])
    return counts


def releases_of(project: Project) -> QuerySet[Release]:
    return Release.objects.filter(project=project).select_related("project", "candidate", "control")
