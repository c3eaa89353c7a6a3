"""REST: the registry, promote and roll back."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.lineage import lineage_strip
from apps.versions import selectors, services
from apps.versions.models import BaseModel, ModelVersion
from apps.versions.release_gates import gate_standings

router = Router(tags=["versions"])


class EditionOut(Schema):
    kind: str = Field(description="standard or high_speed")
    profile: dict[str, Any] = Field(description="How engines serve it; weights are the same for both")


class EvidenceOut(Schema):
    kind: str = Field(description="suite, comparison, speed, non_inferiority, gate or gate_override")
    edition: str = Field(alias="edition_kind", description="Empty when it is about the version as a whole")
    title: str
    sentence: str = Field(description="The finding in words, with its interval and n")
    verdict: str
    source: str = Field(description="What measured it, as <app>.<object>:<id>")
    data: dict[str, Any]
    created_at: datetime


class NodeOut(Schema):
    key: str
    label: str
    url: str


class VersionOut(Schema):
    id: int
    number: str = Field(description="major.minor: the base and the count of adapters on it")
    state: str = Field(description="registered, candidate, in_service or retired")
    base: str = Field(alias="base.name")
    parent_id: int | None
    adapter_name: str
    adapter_digest: str
    origin: str
    notes: str
    created_by: str
    created_at: datetime


class VersionDetailOut(VersionOut):
    editions: list[EditionOut]
    evidence: list[EvidenceOut]
    lineage: list[NodeOut] = Field(description="Ancestors, this version, descendants, in order")

    @staticmethod
    def resolve_lineage(version: ModelVersion) -> list[Any]:
        return list(lineage_strip(version.lineage_key))


class VersionIn(Schema):
    """``adapter_digest`` names a LoRA folder in the artifact store (a tree manifest)."""

    adapter_name: str = Field(min_length=1, max_length=120, description="Never used for other weights before")
    adapter_digest: str = Field(pattern="^[0-9a-f]{64}$")
    base: str = Field("", description="Name of the base model; may be left out when there is one")
    parent_id: int | None = None
    origin: str = Field("", max_length=80, description="Your own key: registering it twice gives one version")
    origin_label: str = Field("", max_length=120, description="How the origin reads in the lineage")
    notes: str = Field("", max_length=10_000)


class ReasonIn(Schema):
    reason: str = Field(min_length=1, max_length=2000, description="Goes into the audit trail")


class GateStandingOut(Schema):
    title: str
    state: str = Field(description="passed, failed, undecided, unjudged or stale")
    sentence: str
    url: str
    overridden: bool
    blocks: bool = Field(description="Whether it keeps the version from being released")

    @staticmethod
    def resolve_overridden(standing: Any) -> bool:
        return standing.overridden is not None


class PromoteIn(ReasonIn):
    without_evidence: bool = Field(
        False, description="Promote although no evaluation has finished. Recorded in the audit trail."
    )
    override_gates: str = Field(
        "", max_length=2000, description="Why to promote although a required gate did not pass. Recorded."
    )


@router.get("/versions", response=list[VersionOut], summary="List versions")
def versions(request: ApiRequest, state: str = "", limit: int = 100) -> Any:
    """Newest number first. ``state`` filters; ``limit`` is at most 500."""
    request.auth.require("read")
    rows = ModelVersion.objects.filter(project=request.auth.project).select_related("base")
    if state:
        rows = rows.filter(state=state)
    return rows[: max(1, min(limit, 500))]


@router.get("/versions/{version_id}", response={200: VersionDetailOut, 404: ErrorOut}, summary="One version")
def version(request: ApiRequest, version_id: int) -> Any:
    """With its editions, its evidence and its lineage."""
    request.auth.require("read")
    return _version(request, version_id)


@router.get(
    "/versions/{version_id}/gates",
    response={200: list[GateStandingOut], 404: ErrorOut},
    summary="How the required gates stand",
)
def version_gates(request: ApiRequest, version_id: int) -> Any:
    """What lets the version be released, and what blocks it."""
    request.auth.require("read")
    return gate_standings(
        get_or_404(
            ModelVersion.objects.filter(project=request.auth.project).select_related("project"), pk=version_id
        )
    )


@router.post(
    "/versions",
    response={201: VersionDetailOut, 400: ErrorOut, 404: ErrorOut},
    summary="Register a version",
)
def version_register(request: ApiRequest, body: VersionIn) -> Any:
    """Register an adapter made elsewhere. Both editions are made; it gets the next minor number."""
    request.auth.require("versions")
    project = request.auth.project
    bases = BaseModel.objects.filter(project=project)
    base = get_or_404(bases.order_by("-pk"), **({"name": body.base} if body.base else {}))
    parent = _version(request, body.parent_id) if body.parent_id else None
    made = services.version_register(
        project=project,
        base=base,
        parent=parent,
        adapter_name=body.adapter_name,
        adapter_digest=body.adapter_digest,
        origin=body.origin,
        origin_label=body.origin_label,
        notes=body.notes,
        by=request.auth,
    )
    return 201, _version(request, made.pk)


@router.post(
    "/versions/{version_id}/promote",
    response={200: VersionOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Promote a version",
)
def promote(request: ApiRequest, version_id: int, body: PromoteIn) -> Any:
    """Put it into service for all traffic at once; promoting what is in service changes nothing.

    Needs the scope ``release``, a finished evaluation, and every required gate passed. The usual way is a
    release, which moves traffic in steps.
    """
    request.auth.require("release")
    found = _version(request, version_id)
    return services.version_promote(
        version=found,
        reason=body.reason,
        without_evidence=body.without_evidence,
        override_gates=body.override_gates,
        by=request.auth,
    )


@router.post(
    "/rollback",
    response={200: VersionOut, 400: ErrorOut, 403: ErrorOut, 409: ErrorOut},
    summary="Roll back",
)
def roll_back(request: ApiRequest, body: ReasonIn) -> Any:
    """Put the previous version back into service and abort a running release, in one step.

    Answers with the version that serves now. Calling it again changes nothing. Needs the scope
    ``release``.
    """
    request.auth.require("release")
    return services.version_roll_back(project=request.auth.project, reason=body.reason, by=request.auth)


def _version(request: ApiRequest, version_id: int) -> Any:
    return get_or_404(selectors.versions_of(request.auth.project).prefetch_related("editions"), pk=version_id)
