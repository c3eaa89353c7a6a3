"""REST: probes of unchanged names."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.models import Project
from apps.evals import selectors, services
from apps.evals.models import Probe
from apps.evals.probe_claims import claim_of
from apps.evals.probe_sampling import requests_of
from apps.versions.models import Deployment, ModelVersion

router = Router(tags=["evals"])


class TargetIn(Schema):
    """Give ``version_id`` and ``edition``, or ``deployment_id`` of an external endpoint."""

    version_id: int | None = None
    edition: str = "standard"
    deployment_id: int | None = None

    def chosen(self, project: Project) -> dict[str, Any]:
        version = deployment = None
        if self.version_id is not None:
            version = get_or_404(ModelVersion.objects.filter(project=project), pk=self.version_id)
        if self.deployment_id is not None:
            deployment = get_or_404(Deployment.objects.filter(project=project), pk=self.deployment_id)
        return {"version": version, "edition_kind": self.edition, "deployment": deployment}


class ProbeIn(TargetIn):
    """With ``follows`` and no other target, ``edition`` of whatever version is in service is watched.
    Without ``prompts`` the built-in ones are asked."""

    follows: bool = False
    prompts: list[str] = Field(default_factory=list)
    every_s: int = 21_600


class ProbeOut(Schema):
    """``alarming``: the last two rounds that say something differ from the reference. ``notes`` say what
    the reference lacks, ``requests_per_round`` what a round costs, ``mode`` by what it watches (logprobs,
    border or answers), ``false_alarms`` what of their rate is measured and what a bound, ``blind_to`` what
    it cannot see; they are empty without a reference."""

    id: int
    model: str
    deployment_id: int
    version_id: int | None
    edition: str = Field(alias="edition_kind")
    follows: bool
    every_s: int
    enabled: bool
    next_at: datetime | None
    busy_until: datetime | None
    alarming: bool = False
    has_reference: bool = False
    requests_per_round: int | None = None
    notes: list[str] = Field(default_factory=list)
    mode: str | None = None
    false_alarms: list[str] = Field(default_factory=list)
    blind_to: str = ""

    @staticmethod
    def resolve_alarming(row: Probe) -> bool:
        return getattr(row, "telling", None) == getattr(row, "telling_before", None) == "flagged"

    @staticmethod
    def resolve_has_reference(row: Probe) -> bool:
        return row.reference is not None

    @staticmethod
    def resolve_requests_per_round(row: Probe) -> int | None:
        return requests_of(row.reference) if row.reference else None

    @staticmethod
    def resolve_notes(row: Probe) -> list[str]:
        return list(row.reference["notes"]) if row.reference else []

    @staticmethod
    def resolve_mode(row: Probe) -> str | None:
        return claim_of(row.reference, row.every_s).mode if row.reference else None

    @staticmethod
    def resolve_false_alarms(row: Probe) -> list[str]:
        return claim_of(row.reference, row.every_s).false_alarms if row.reference else []

    @staticmethod
    def resolve_blind_to(row: Probe) -> str:
        return claim_of(row.reference, row.every_s).blind_to if row.reference else ""


class ProbeChange(Schema):
    """What is left out stays as it is."""

    enabled: bool | None = None
    every_s: int | None = None


class RoundOut(Schema):
    """``verdict`` is reference, unchanged, flagged, partial or unmeasured; the last two are not
    "unchanged". ``signals`` are by name: state, value, threshold, n, reasons, detail."""

    id: int
    verdict: str
    reasons: list[str]
    signals: dict[str, Any]
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    created_at: datetime


class ReferenceOut(Schema):
    reference: dict[str, Any] | None


@router.get("/probes", response=list[ProbeOut])
def probes(request: ApiRequest) -> Any:
    request.auth.require("read")
    return selectors.probes_of(request.auth.project)


@router.post("/probes", response={201: ProbeOut, 400: ErrorOut, 404: ErrorOut, 409: ErrorOut})
def probe_create(request: ApiRequest, body: ProbeIn) -> Any:
    request.auth.require("evals")
    project = request.auth.project
    return 201, services.probe_create(
        project=project,
        **body.chosen(project),
        follows=body.follows,
        prompts=body.prompts,
        every_s=body.every_s,
        by=request.auth,
    )


@router.get("/probes/{probe_id}", response={200: ProbeOut, 404: ErrorOut})
def probe(request: ApiRequest, probe_id: int) -> Any:
    request.auth.require("read")
    return _probe(request, probe_id)


@router.patch("/probes/{probe_id}", response={200: ProbeOut, 400: ErrorOut, 404: ErrorOut})
def probe_change(request: ApiRequest, probe_id: int, body: ProbeChange) -> Any:
    """Pause, resume, or ask more or less often."""
    request.auth.require("evals")
    row = _probe(request, probe_id)
    return services.probe_change(probe=row, enabled=body.enabled, every_s=body.every_s, by=request.auth)


@router.get("/probes/{probe_id}/rounds", response=list[RoundOut])
def probe_rounds(request: ApiRequest, probe_id: int, limit: int = 50) -> Any:
    """Rounds, newest first."""
    request.auth.require("read")
    return _probe(request, probe_id).rounds.all()[: max(1, min(limit, 500))]


@router.get("/probes/{probe_id}/reference", response={200: ReferenceOut, 404: ErrorOut})
def probe_reference(request: ApiRequest, probe_id: int) -> Any:
    """What rounds are compared with, as it was taken; null before that."""
    request.auth.require("read")
    return _probe(request, probe_id)


@router.post("/probes/{probe_id}/ask", response={202: ProbeOut, 404: ErrorOut})
def probe_ask(request: ApiRequest, probe_id: int) -> Any:
    """Ask now. The round appears among the probe's rounds when it is done."""
    request.auth.require("evals")
    probe = _probe(request, probe_id)
    services.probe_request_round(probe=probe, by=request.auth)
    return 202, probe


@router.post("/probes/{probe_id}/renew", response={202: ProbeOut, 404: ErrorOut})
def probe_renew(request: ApiRequest, probe_id: int) -> Any:
    """The change is known and meant: take a new reference."""
    request.auth.require("evals")
    probe = _probe(request, probe_id)
    services.probe_reference_renew(probe=probe, by=request.auth)
    return 202, probe


def _probe(request: ApiRequest, probe_id: int) -> Probe:
    probe: Probe = get_or_404(selectors.probes_of(request.auth.project), pk=probe_id)
    return probe
