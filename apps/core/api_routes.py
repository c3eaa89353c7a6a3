"""REST: who am I, keys, members, work units, events, audit."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core import services, units
from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.models import ApiKey, AuditEvent, Event, Membership, WorkUnit

router = Router(tags=["project"])


class MeOut(Schema):
    project: str
    actor: str
    scopes: list[str]


@router.get("/me", response=MeOut)
def me(request: ApiRequest) -> Any:
    """The project and what this caller may do in it."""
    from apps.core.permissions import SCOPES

    actor = request.auth
    return {"project": actor.project.slug, "actor": actor.name, "scopes": [s for s in SCOPES if actor.may(s)]}


class KeyIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    scopes: list[str]


class KeyOut(Schema):
    id: int
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewKeyOut(KeyOut):
    secret: str


@router.get("/api-keys", response=list[KeyOut])
def api_keys(request: ApiRequest) -> Any:
    request.auth.require("admin")
    return ApiKey.objects.filter(project=request.auth.project)


@router.post("/api-keys", response={201: NewKeyOut, 400: ErrorOut})
def api_key_create(request: ApiRequest, body: KeyIn) -> Any:
    """The secret is in this answer and nowhere else."""
    request.auth.require("admin")
    made = services.api_key_create(
        project=request.auth.project, name=body.name, scopes=body.scopes, by=request.auth
    )
    return 201, {**KeyOut.from_orm(made.key).dict(), "secret": made.secret}


@router.delete("/api-keys/{key_id}", response={204: None, 404: ErrorOut})
def api_key_revoke(request: ApiRequest, key_id: int) -> Any:
    request.auth.require("admin")
    key = get_or_404(ApiKey.objects.filter(project=request.auth.project), pk=key_id)
    services.api_key_revoke(key=key, by=request.auth)
    return 204, None


class MemberIn(Schema):
    username: str
    role: str


class MemberOut(Schema):
    id: int
    username: str = Field(alias="user.username")
    role: str


@router.get("/members", response=list[MemberOut])
def members(request: ApiRequest) -> Any:
    request.auth.require("read")
    return Membership.objects.filter(project=request.auth.project).select_related("user")


@router.post("/members", response={201: MemberOut, 404: ErrorOut, 409: ErrorOut})
def member_add(request: ApiRequest, body: MemberIn) -> Any:
    request.auth.require("admin")
    return 201, services.membership_add(
        project=request.auth.project, username=body.username, role=body.role, by=request.auth
    )


class UnitOut(Schema):
    id: int
    kind: str
    key: str
    owner: str
    queue: str
    state: str
    attempt: int
    worker: str
    progress: dict[str, Any]
    error: str
    created_at: datetime
    finished_at: datetime | None


@router.get("/units", response=list[UnitOut])
def work_units(request: ApiRequest, state: str = "", owner: str = "", limit: int = 100) -> Any:
    """Work units, newest first. ``limit`` is at most 500."""
    request.auth.require("read")
    rows = WorkUnit.objects.filter(project=request.auth.project).order_by("-pk")
    if state:
        rows = rows.filter(state=state)
    if owner:
        rows = rows.filter(owner=owner)
    return rows[: max(1, min(limit, 500))]


@router.post("/units/{unit_id}/retry", response={200: UnitOut, 409: ErrorOut})
def unit_retry(request: ApiRequest, unit_id: int) -> Any:
    request.auth.require("evals")
    unit = get_or_404(WorkUnit.objects.filter(project=request.auth.project), pk=unit_id)
    units.unit_retry(unit=unit, by=request.auth)
    unit.refresh_from_db()
    return unit


class EventOut(Schema):
    id: int
    topic: str
    kind: str
    data: dict[str, Any]
    created_at: datetime


@router.get("/events", response=list[EventOut])
def events(request: ApiRequest, after: int = 0, limit: int = 200) -> Any:
    """Events after id ``after``, oldest first: poll with the last id you saw and miss nothing."""
    request.auth.require("read")
    rows = Event.objects.filter(project=request.auth.project, pk__gt=after)
    return rows[: max(1, min(limit, 1000))]


class AuditOut(Schema):
    id: int
    actor: str
    action: str
    object_type: str
    object_id: str
    reason: str
    detail: dict[str, Any]
    created_at: datetime


@router.get("/audit", response=list[AuditOut])
def audit_trail(request: ApiRequest, before: int = 0, limit: int = 100) -> Any:
    """The audit trail, newest first; ``before`` pages back by id."""
    request.auth.require("read")
    rows = AuditEvent.objects.filter(project=request.auth.project)
    if before:
        rows = rows.filter(pk__lt=before)
    return rows[: max(1, min(limit, 500))]
