"""REST: kinds of verifiers, their versions, trials, and agreement with people."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.feedback import agreements, selectors, services
from apps.feedback.models import FailureCase, Family, Verifier, VerifierAgreement, VerifierTrial
from apps.feedback.verifier_diff import changed_lines
from apps.feedback.verifiers import left_to_tasks, versions_of
from domain.verifiers import KINDS

router = Router(tags=["verifiers"])


class KindOut(Schema):
    """``needs`` names what a sandbox, an environment or judges must find out first."""

    name: str
    title: str
    description: str
    needs: list[str]
    params_schema: dict[str, Any]
    reference_schema: dict[str, Any]


@router.get("/verifier-kinds", response=list[KindOut])
def kinds(request: ApiRequest) -> Any:
    """What a verifier can be, with JSON schemas of its parameters and of the reference of a task."""
    request.auth.require("read")
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "description": kind.description,
            "needs": sorted(kind.needs),
            "params_schema": dict(kind.params_schema),
            "reference_schema": dict(kind.reference_schema),
        }
        for kind in KINDS.values()
    ]


class VersionOut(Schema):
    """``left_to_tasks`` are required parameters that each task must say itself; ``pinned`` counts the tasks
    that were made with this version."""

    id: int
    name: str
    number: int
    kind: str
    digest: str
    note: str
    admission: str
    created_by: str
    created_at: datetime
    pinned: int
    left_to_tasks: list[str]

    @staticmethod
    def resolve_left_to_tasks(row: Verifier) -> list[str]:
        return left_to_tasks(row.kind, row.params) if row.kind in KINDS else []


@router.get("/verifiers/{verifier_id}/versions", response={200: list[VersionOut], 404: ErrorOut})
def versions(request: ApiRequest, verifier_id: int) -> Any:
    """All versions of the same name, newest first."""
    request.auth.require("read")
    return selectors.verifier_versions(_verifier(request, verifier_id))


class DiffOut(Schema):
    """``lines`` in the form of ``diff -u`` without its head; none where the two are the same."""

    before: int
    after: int
    lines: list[str]


@router.get("/verifiers/{verifier_id}/diff", response={200: DiffOut, 404: ErrorOut})
def diff(request: ApiRequest, verifier_id: int, against: int) -> Any:
    """What changed from version number ``against`` to this one."""
    request.auth.require("read")
    found = _verifier(request, verifier_id)
    other: Verifier = get_or_404(versions_of(found), number=against)
    return {"before": other.number, "after": found.number, "lines": changed_lines(other, found)}


class UseIn(Schema):
    verifier: int


class UseOut(Schema):
    family: str
    verifier: int


@router.post("/families/{family_id}/verifier", response={200: UseOut, 400: ErrorOut, 404: ErrorOut})
def family_use(request: ApiRequest, family_id: int, body: UseIn) -> Any:
    """Let a family judge its next tasks by this version; tasks that exist keep theirs."""
    request.auth.require("training")
    family: Family = get_or_404(Family.objects.filter(project=request.auth.project), pk=family_id)
    found = _verifier(request, body.verifier)
    services.family_use_verifier(family=family, verifier=found, by=request.auth)
    return {"family": family.name, "verifier": found.pk}


# trials --------------------------------------------------------------------------------------


class TrialIn(Schema):
    """A kind with parameters, or the ``verifier`` of an id. ``case`` brings question, answers and reference
    where they are not given."""

    verifier: int | None = None
    kind: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    answers: list[str] = Field(default_factory=list)
    reference: Any = None
    question: str = Field(default="", max_length=100_000)
    case: int | None = None


class ResultOut(Schema):
    """``score`` is null where nothing was decided."""

    state: str
    score: float | None
    checks: list[dict[str, Any]]
    reasons: list[str]


class TrialOut(Schema):
    """``results`` are in the order of the answers; empty until ``finished``."""

    trial: int | None
    finished: bool
    error: str = ""
    results: list[ResultOut]


@router.post("/verifier-trials", response={200: TrialOut, 202: TrialOut, 400: ErrorOut, 404: ErrorOut})
def trial_start(request: ApiRequest, body: TrialIn) -> Any:
    """Judge answers by a verifier, saved or not. What needs a sandbox or judges is done by a worker: read
    the trial until it has finished."""
    request.auth.require("training")
    kind, params = body.kind, body.params
    if body.verifier is not None:
        found = _verifier(request, body.verifier)
        kind, params = found.kind, {**found.params, **params}
    elif not kind:
        raise Refused("Name a verifier, or a kind with its parameters.", code="verifier_missing")
    case: FailureCase | None = None
    if body.case is not None:
        cases = FailureCase.objects.filter(project=request.auth.project).select_related("capture")
        case = get_or_404(cases, pk=body.case)
    tried = services.verifier_try(
        project=request.auth.project,
        kind=kind,
        params=params,
        answers=body.answers,
        reference=body.reference,
        question=body.question,
        case=case,
        by=request.auth,
    )
    if tried.trial is not None:
        return Status(202, _trial(tried.trial))
    return Status(200, {"trial": None, "finished": True, "results": tried.results})


@router.get("/verifier-trials/{trial_id}", response={200: TrialOut, 404: ErrorOut})
def trial(request: ApiRequest, trial_id: int) -> Any:
    request.auth.require("read")
    found: VerifierTrial = get_or_404(VerifierTrial.objects.filter(project=request.auth.project), pk=trial_id)
    return _trial(found)


def _trial(trial: VerifierTrial) -> dict[str, Any]:
    finished = trial.finished_at is not None
    return {"trial": trial.pk, "finished": finished, "error": trial.error, "results": trial.results}


# agreement with people -----------------------------------------------------------------------


class FigureOut(Schema):
    value: float
    low: float
    high: float
    n: int
    clusters: int | None
    method: str


class AgreementOut(Schema):
    """A failure is the positive class: ``caught`` both call a failure, ``missed`` only people, ``accused``
    only the verifier, ``cleared`` neither. Figures are null while it runs, where ``too_small`` says why, and
    where one is undefined."""

    id: int
    number: int
    size: int
    left_out: dict[str, int]
    n: int
    clusters: int
    unscored: int
    errors: int
    caught: int
    missed: int
    accused: int
    cleared: int
    agreement: FigureOut | None
    kappa: FigureOut | None
    f1: FigureOut | None
    too_small: str
    error: str
    started_by: str
    started_at: datetime
    finished_at: datetime | None


class RowOut(Schema):
    """``text`` says which of the case's texts was judged; ``passes`` is people's word."""

    case: int = Field(alias="case_id")
    text: str
    passes: bool
    state: str
    reasons: list[str]


class AgreementFullOut(AgreementOut):
    disagreements: list[RowOut]
    undecided: list[RowOut]


@router.get("/verifiers/{verifier_id}/agreements", response={200: list[AgreementOut], 404: ErrorOut})
def agreements_of(request: ApiRequest, verifier_id: int) -> Any:
    """Every measurement of this version, newest first."""
    request.auth.require("read")
    return list(_verifier(request, verifier_id).agreements.all()[:50])


@router.post(
    "/verifiers/{verifier_id}/agreements",
    response={202: AgreementOut, 400: ErrorOut, 404: ErrorOut, 409: ErrorOut},
)
def agreement_start(request: ApiRequest, verifier_id: int) -> Any:
    """Judge the labelled cases of the verifier's families; read the measurement until it has finished."""
    request.auth.require("training")
    found = _verifier(request, verifier_id)
    return Status(202, services.agreement_start(verifier=found, by=request.auth))


@router.get("/verifier-agreements/{agreement_id}", response={200: AgreementFullOut, 404: ErrorOut})
def agreement(request: ApiRequest, agreement_id: int) -> Any:
    """With the answers that people and the verifier judged differently, at most 200."""
    request.auth.require("read")
    rows = VerifierAgreement.objects.filter(verifier__project=request.auth.project)
    found: VerifierAgreement = get_or_404(rows, pk=agreement_id)
    return {
        **AgreementOut.from_orm(found).dict(),
        "disagreements": list(agreements.disagreements(found)),
        "undecided": list(agreements.undecided(found)),
    }


def _verifier(request: ApiRequest, verifier_id: int) -> Verifier:
    found: Verifier = get_or_404(selectors.verifiers_of(request.auth.project), pk=verifier_id)
    return found
