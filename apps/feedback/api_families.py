"""REST: families, verifiers and their gauntlets, installed packs."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.feedback import selectors, services
from apps.feedback.models import GauntletEntry, Verifier
from apps.feedback.pack_selectors import packs_of
from domain.contracts import FamilyCheck

router = Router(tags=["families"])


class FamilyIn(Schema):
    """With ``pack`` and without ``verifier_kind`` the family comes from the installed pack, with tasks."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[a-z0-9_\-]+$")
    title: str = Field(default="", max_length=120)
    description: str = ""
    pack: str = ""
    verifier_kind: str = ""
    verifier_params: dict[str, Any] = Field(default_factory=dict)


class FamilyOut(Schema):
    id: int
    name: str
    title: str
    description: str
    pack: str
    verifier: int | None = Field(alias="verifier_id")
    unavailable: str
    train: int = 0
    held_out: int = 0


@router.get("/families", response=list[FamilyOut])
def families(request: ApiRequest) -> Any:
    request.auth.require("read")
    return selectors.families_of(request.auth.project)


@router.post("/families", response={201: FamilyOut, 400: ErrorOut})
def family_ensure(request: ApiRequest, body: FamilyIn) -> Any:
    """Make a family with its verifier, or give an existing one another verifier. A family of an installed
    pack comes with its verifier and tasks, and its gauntlet starts."""
    request.auth.require("training")
    project = request.auth.project
    if body.verifier_kind:
        made = services.family_ensure(project=project, by=request.auth, **body.dict())
    elif body.pack:
        made = services.pack_family_add(project=project, name=body.name, pack_name=body.pack, by=request.auth)
    else:
        raise Refused("Name a verifier kind, or the pack that brings the family.", code="verifier_missing")
    return 201, selectors.families_of(project).get(pk=made.pk)


# verifiers and gauntlets ---------------------------------------------------------------------


class EntryOut(Schema):
    """``row`` is the cheat's number in the catalogue; a retired entry is judged no more."""

    id: int
    origin: str
    name: str
    answer: str
    turns: list[str]
    must_pass: bool
    row: int | None
    source: str
    added_by: str
    outcome: str
    reasons: list[str]
    retired_at: datetime | None
    retired_by: str
    retired_reason: str


class OutcomeOut(Schema):
    """What one run said; ``states`` has one state for each repeat."""

    run: int = Field(alias="run.number")
    states: list[str]
    right: bool
    reasons: list[str]


class EntryFullOut(EntryOut):
    task: dict[str, Any]
    history: list[OutcomeOut]


class RunOut(Schema):
    number: int
    started_by: str
    started_at: datetime
    finished_at: datetime | None
    size: int
    counts: dict[str, int]
    wrong: int
    admission: str
    reasons: list[str]
    error: str


class VerifierOut(Schema):
    id: int
    name: str
    number: int
    kind: str
    params: dict[str, Any]
    digest: str
    note: str
    admission: str
    reasons: list[str]
    checked_at: datetime | None


class VerifierFullOut(VerifierOut):
    entries: list[EntryOut]
    runs: list[RunOut]


@router.get("/verifiers", response=list[VerifierOut])
def verifiers(request: ApiRequest) -> Any:
    request.auth.require("read")
    return selectors.verifiers_of(request.auth.project)


@router.get("/verifiers/{verifier_id}", response={200: VerifierFullOut, 404: ErrorOut})
def verifier(request: ApiRequest, verifier_id: int) -> Any:
    """With every entry of its gauntlet, retired ones too, and the last twenty runs."""
    request.auth.require("read")
    found = get_or_404(selectors.verifiers_of(request.auth.project), pk=verifier_id)
    return {
        **VerifierOut.from_orm(found).dict(),
        "entries": selectors.gauntlet_of(found),
        "runs": list(found.runs.all()[:20]),
    }


class VerifierIn(Schema):
    """``after`` is the number of the version that this one changes, 0 for a new name: where somebody saved
    another meanwhile, nothing is made."""

    name: str = Field(min_length=1, max_length=100)
    kind: str
    params: dict[str, Any] = Field(default_factory=dict)
    note: str = Field(default="", max_length=300)
    after: int | None = None


@router.post("/verifiers", response={201: VerifierOut, 400: ErrorOut, 409: ErrorOut})
def verifier_create(request: ApiRequest, body: VerifierIn) -> Any:
    """The next version of the verifier of this name, or the one that has this kind and these parameters.
    A new version has to pass its gauntlet before it may train."""
    request.auth.require("training")
    return 201, services.verifier_create(project=request.auth.project, by=request.auth, **body.dict())


class CheckOut(Schema):
    unit: int


@router.post("/verifiers/{verifier_id}/check", response={202: CheckOut, 400: ErrorOut, 409: ErrorOut})
def verifier_check(request: ApiRequest, verifier_id: int) -> Any:
    """Start the gauntlet; read the verifier's ``admission`` when the unit has finished."""
    request.auth.require("training")
    found: Verifier = get_or_404(selectors.verifiers_of(request.auth.project), pk=verifier_id)
    return 202, {"unit": services.verifier_check(verifier=found, by=request.auth).pk}


class EntryIn(Schema):
    """``turns`` are said turn by turn in the task's environment; else ``answer`` is the one answer."""

    origin: str = Field(pattern="^(known_good|known_bad|no_op|exploit)$")
    name: str = Field(min_length=1, max_length=120)
    task: dict[str, Any]
    answer: str = ""
    turns: list[str] = Field(default_factory=list, max_length=64)
    row: int | None = None
    source: str = Field(default="", max_length=200)


@router.post("/verifiers/{verifier_id}/entries", response={201: EntryOut, 400: ErrorOut})
def entry_add(request: ApiRequest, verifier_id: int, body: EntryIn) -> Any:
    """Add a solution that the verifier must judge right before it may train anything."""
    request.auth.require("training")
    found: Verifier = get_or_404(selectors.verifiers_of(request.auth.project), pk=verifier_id)
    return 201, services.entry_add(verifier=found, by=request.auth, **body.dict())


@router.get("/gauntlet-entries/{entry_id}", response={200: EntryFullOut, 404: ErrorOut})
def entry(request: ApiRequest, entry_id: int) -> Any:
    """One entry with its task and what every run said of it, newest first."""
    request.auth.require("read")
    found = _entry(request, entry_id)
    history = list(found.outcomes.select_related("run"))
    return {**EntryOut.from_orm(found).dict(), "task": found.task, "history": history}


class RetireIn(Schema):
    reason: str = Field(min_length=1, max_length=300)


@router.post("/gauntlet-entries/{entry_id}/retire", response={200: EntryOut, 400: ErrorOut, 409: ErrorOut})
def entry_retire(request: ApiRequest, entry_id: int, body: RetireIn) -> Any:
    """Take an entry out for a stated reason; the verifier must run its gauntlet again."""
    request.auth.require("training")
    found = _entry(request, entry_id)
    services.entry_retire(entry=found, reason=body.reason, by=request.auth)
    return found


def _entry(request: ApiRequest, entry_id: int) -> GauntletEntry:
    entries = GauntletEntry.objects.filter(verifier__project=request.auth.project)
    found: GauntletEntry = get_or_404(entries, pk=entry_id)
    return found


# packs ---------------------------------------------------------------------------------------


class PackFamilyOut(Schema):
    """``check`` is the last record, null where the family was never checked; ``family`` is its id in this
    project, null where it was not added."""

    name: str
    title: str
    description: str
    verifier_kinds: list[str]
    environment: str
    parts: list[str]
    check: FamilyCheck | None
    family: int | None


class PackOut(Schema):
    name: str
    title: str
    description: str
    families: list[PackFamilyOut]


@router.get("/packs", response=list[PackOut])
def packs(request: ApiRequest) -> Any:
    """Installed packs and their families, with the last check of each."""
    request.auth.require("read")
    return packs_of(request.auth.project)


class PackChecksIn(Schema):
    """No ``families``: all."""

    families: list[str] = Field(default_factory=list)
    sample: int = Field(default=5, ge=1, le=1000)
    seed: int = 0


@router.post("/packs/checks", response={202: CheckOut, 400: ErrorOut})
def packs_check(request: ApiRequest, body: PackChecksIn) -> Any:
    """Check families for real: known-good answers, doing nothing, known-bad answers. Read ``GET /packs``
    when the unit has finished."""
    request.auth.require("training")
    unit = services.packs_check(project=request.auth.project, by=request.auth, **body.dict())
    return 202, {"unit": unit.pk}


class PackAddOut(Schema):
    families: list[str]


@router.post("/packs/{name}/add", response={202: PackAddOut, 400: ErrorOut})
def pack_add(request: ApiRequest, name: str) -> Any:
    """Add every family of a pack that the project lacks, in the background; answers with their names."""
    request.auth.require("training")
    return 202, {"families": services.pack_add(project=request.auth.project, pack=name, by=request.auth)}
