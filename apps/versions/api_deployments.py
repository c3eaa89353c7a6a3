"""REST: routing and the addresses behind it."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import Http404
from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.versions import selectors, services
from apps.versions.models import Deployment, RoutingRevision
from apps.versions.terms import Terms

router = Router(tags=["routing"])


class RevisionOut(Schema):
    number: int
    snapshot: dict[str, Any] = Field(description="Everything the gateway goes by, as one document")
    actor: str
    reason: str
    created_at: datetime


class RoutingIn(Schema):
    """What is left out stays as it is."""

    task_types: dict[str, str] | None = Field(
        None,
        description='Edition per task type, for example {"interactive": "high_speed"}; replaces the table',
    )
    default_edition: str | None = Field(None, description="For requests that name no task type")
    capture_failures: bool | None = None
    capture_success_rate: float | None = Field(
        None, ge=0.0, le=1.0, description="Share of successful requests that are captured too"
    )
    failure_signals: list[str] | None = Field(
        None,
        description="What makes a unit failed: error, negative_feedback, correction, verifier",
    )
    reason: str = Field("", max_length=2000)


class DeploymentOut(Schema):
    id: int
    name: str
    kind: str = Field(description="engine (ours, from the settings) or external")
    edition: str = Field(alias="edition_kind")
    base_url: str
    model: str
    has_key: bool
    healthy: bool | None = Field(description="null: not looked at yet")
    loaded: list[str] = Field(description="Models and adapters that an engine serves now")
    max_concurrency: int = Field(
        description="Of an external endpoint, like all that follows up to the prices"
    )
    requests_per_minute: int | None = Field(description="null: no limit")
    tokens_per_minute: int | None = Field(description="null: no limit")
    timeout_s: int
    deadline_s: int
    max_attempts: int
    input_usd_per_mtok: Decimal | None = Field(description="null: not known")
    output_usd_per_mtok: Decimal | None = Field(description="null: not known")
    checked_at: datetime | None
    retired_at: datetime | None

    @staticmethod
    def resolve_has_key(row: Deployment) -> bool:
        return bool(row.api_key)


class TermsIn(Schema):
    """Limits hold for all that this installation asks of the endpoint together."""

    max_concurrency: int = Field(16, description="Requests at once")
    requests_per_minute: int | None = Field(None, description="null: no limit")
    tokens_per_minute: int | None = Field(
        None, description="Tokens of prompts and answers together; null: no limit"
    )
    timeout_s: int = Field(60, description="Seconds for one attempt")
    deadline_s: int = Field(600, description="Seconds for all attempts of a request and the waits between")
    max_attempts: int = Field(5, description="Of one request; 1: it is never sent again")
    input_usd_per_mtok: Decimal | None = Field(
        None, description="US dollars per million tokens of prompts; null: not known"
    )
    output_usd_per_mtok: Decimal | None = Field(
        None, description="US dollars per million tokens of answers; null: not known"
    )

    def terms(self, before: Terms) -> Terms:
        """``before`` with what was sent; what was left out stays."""
        sent = self.dict(exclude_unset=True)
        return replace(before, **{name: sent[name] for name in Terms.names() if name in sent})


class EndpointIn(TermsIn):
    name: str = Field(min_length=1, max_length=100, description="Asked for as the model “endpoint:<name>”")
    base_url: str = Field(max_length=300, description="OpenAI-compatible, with or without /v1")
    model: str = Field(min_length=1, max_length=200)
    api_key: str = Field("", max_length=2000, description="Stored encrypted; no answer ever contains it")


class EndpointChangeIn(TermsIn):
    """What is left out stays as it is; a limit or price of null is taken away."""

    name: str | None = Field(None, max_length=100)
    base_url: str | None = Field(None, max_length=300)
    model: str | None = Field(None, max_length=200)
    api_key: str | None = Field(None, max_length=2000, description="Left out or empty: the stored key stays")


class TestOut(Schema):
    ok: bool
    sentence: str


@router.get("/routing", response={200: RevisionOut, 404: ErrorOut}, summary="Current routing")
def routing(request: ApiRequest) -> Any:
    """The revision that gateways serve by. 404 while no version is in service."""
    request.auth.require("read")
    revision = selectors.routing_current(request.auth.project)
    if revision is None:
        raise Http404
    return revision


@router.get("/routing/revisions", response=list[RevisionOut], summary="Routing revisions")
def revisions(request: ApiRequest, before: int = 0, limit: int = 50) -> Any:
    """Newest first; ``before`` pages back by number. ``limit`` is at most 200."""
    request.auth.require("read")
    rows = RoutingRevision.objects.filter(project=request.auth.project)
    if before:
        rows = rows.filter(number__lt=before)
    return rows[: max(1, min(limit, 200))]


@router.post(
    "/routing",
    response={200: RevisionOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut},
    summary="Change routing",
)
def routing_change(request: ApiRequest, body: RoutingIn) -> Any:
    """Make the next revision; a change that changes nothing makes none. Needs the scope ``release``."""
    request.auth.require("release")
    revision = services.routing_change(project=request.auth.project, by=request.auth, **body.dict())
    if revision is None:
        raise Http404
    return revision


@router.get("/deployments", response=list[DeploymentOut], summary="Engines and endpoints")
def deployments(request: ApiRequest, retired: bool = False) -> Any:
    """In use; with ``retired=true`` also those that are not."""
    request.auth.require("read")
    rows = Deployment.objects.filter(project=request.auth.project)
    return rows if retired else rows.in_use()


@router.get(
    "/deployments/{deployment_id}", response={200: DeploymentOut, 404: ErrorOut}, summary="One deployment"
)
def deployment(request: ApiRequest, deployment_id: int) -> Any:
    request.auth.require("read")
    return _deployment(request, deployment_id)


@router.post(
    "/deployments",
    response={201: DeploymentOut, 400: ErrorOut, 409: ErrorOut},
    summary="Register an endpoint",
)
def endpoint_register(request: ApiRequest, body: EndpointIn) -> Any:
    """An OpenAI-compatible endpoint of someone else's, as a target of evaluations and of the gateway."""
    request.auth.require("versions")
    return 201, services.deployment_register_external(
        project=request.auth.project,
        name=body.name,
        base_url=body.base_url,
        model=body.model,
        api_key=body.api_key,
        terms=body.terms(Terms()),
        by=request.auth,
    )


@router.patch(
    "/deployments/{deployment_id}",
    response={200: DeploymentOut, 400: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Change an endpoint",
)
def endpoint_change(request: ApiRequest, deployment_id: int, body: EndpointChangeIn) -> Any:
    """A changed address needs the key again."""
    request.auth.require("versions")
    row = _deployment(request, deployment_id)
    return services.deployment_change_external(
        deployment=row,
        name=row.name if body.name is None else body.name,
        base_url=row.base_url if body.base_url is None else body.base_url,
        model=row.model if body.model is None else body.model,
        api_key=body.api_key,
        terms=body.terms(Terms.of(row)),
        by=request.auth,
    )


@router.delete(
    "/deployments/{deployment_id}",
    response={204: None, 404: ErrorOut, 409: ErrorOut},
    summary="Retire an endpoint",
)
def endpoint_retire(request: ApiRequest, deployment_id: int) -> Any:
    """It leaves the routing and its key is forgotten; what was measured on it stays."""
    request.auth.require("versions")
    services.deployment_retire(deployment=_deployment(request, deployment_id), by=request.auth)
    return 204, None


@router.post(
    "/deployments/{deployment_id}/test",
    response={200: TestOut, 404: ErrorOut, 409: ErrorOut},
    summary="Test an endpoint",
)
def endpoint_test(request: ApiRequest, deployment_id: int) -> Any:
    """Ask it for its models; says in one sentence what came back."""
    request.auth.require("versions")
    result = services.deployment_test(deployment=_deployment(request, deployment_id), by=request.auth)
    return result._asdict()


def _deployment(request: ApiRequest, deployment_id: int) -> Any:
    return get_or_404(Deployment.objects.filter(project=request.auth.project), pk=deployment_id)
