"""REST: gateway processes and their revisions, the spool, limits of keys."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.models import ApiKey
from apps.gateway import selectors, services
from apps.gateway.models import KeyLimit
from apps.gateway.snapshot import default_limits

router = Router(tags=["gateway"])


class InstanceOut(Schema):
    name: str
    revision: int | None
    in_flight: int
    rows_lost: int
    started_at: datetime
    seen_at: datetime


class SpoolOut(Schema):
    files: int
    bytes: int
    oldest_s: float | None


class GatewayOut(Schema):
    revision: int | None
    all_on_revision: bool | None
    instances: list[InstanceOut]
    spool: SpoolOut
    losses: list[str]


@router.get("/gateway", response=GatewayOut)
def gateway(request: ApiRequest) -> Any:
    """Gateway processes, the routing revision each one serves, and what waits in the spool."""
    request.auth.require("read")
    return selectors.gateway_state(request.auth.project)


class LimitIn(Schema):
    requests_per_minute: int = Field(ge=1, le=2_000_000_000)
    tokens_per_minute: int = Field(ge=1, le=2_000_000_000)
    in_flight: int = Field(ge=1, le=2_000_000_000)


class LimitOut(LimitIn):
    own: bool


@router.get("/api-keys/{key_id}/limits", response={200: LimitOut, 404: ErrorOut})
def key_limits(request: ApiRequest, key_id: int) -> Any:
    """The key's limits per gateway process; ``own`` is false for the installation's."""
    request.auth.require("admin")
    key = get_or_404(ApiKey.objects.filter(project=request.auth.project), pk=key_id)
    return _limits_of(key)


@router.put("/api-keys/{key_id}/limits", response={200: LimitOut, 404: ErrorOut})
def key_limits_set(request: ApiRequest, key_id: int, body: LimitIn) -> Any:
    request.auth.require("admin")
    key = get_or_404(ApiKey.objects.filter(project=request.auth.project), pk=key_id)
    services.key_limit_set(key=key, by=request.auth, **body.dict())
    return _limits_of(key)


@router.delete("/api-keys/{key_id}/limits", response={204: None, 404: ErrorOut})
def key_limits_clear(request: ApiRequest, key_id: int) -> Any:
    request.auth.require("admin")
    key = get_or_404(ApiKey.objects.filter(project=request.auth.project), pk=key_id)
    services.key_limit_clear(key=key, by=request.auth)
    return 204, None


def _limits_of(key: ApiKey) -> dict[str, Any]:
    own = KeyLimit.objects.filter(key=key).first()
    limits = own or default_limits()
    return {
        "requests_per_minute": limits.requests_per_minute,
        "tokens_per_minute": limits.tokens_per_minute,
        "in_flight": limits.in_flight,
        "own": own is not None,
    }
