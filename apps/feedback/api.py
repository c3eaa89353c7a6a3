"""REST: captures, feedback, cases and their labels, tasks, datasets, rules; families and verifiers have a
file of their own."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.feedback import selectors, services
from apps.feedback.api_families import router as families
from apps.feedback.api_verifiers import router as verifiers
from apps.feedback.models import Dataset, FailureCase, Label, TaskAsset

router = Router(tags=["feedback"])
router.add_router("", families)
router.add_router("", verifiers)


def _page(rows: Any, before: int, limit: int) -> Any:
    """Newest first, paged by id: ids are unique where times are not."""
    return (rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: max(1, min(limit, 500))]


# captures and feedback -----------------------------------------------------------------------


class ItemsIn(Schema):
    items: list[dict[str, Any]]


class ItemOut(Schema):
    external_id: str
    status: str
    message: str = ""


class ItemsOut(Schema):
    results: list[ItemOut]


@router.post("/captures", response={200: ItemsOut, 400: ErrorOut})
def captures_ingest(request: ApiRequest, body: ItemsIn) -> Any:
    """Send 1–1,000 exchanges: ``{"external_id", "messages", "answer", "correction"?, "tools"?, "family"?,
    "cluster"?, "operation"?, "failed"?}``. Each is answered with created, exists or invalid."""
    request.auth.require("capture")
    results = services.captures_ingest(project=request.auth.project, items=body.items, by=request.auth)
    return {"results": results}


class CaptureOut(Schema):
    id: int
    external_id: str
    source: str
    operation: str
    family: str
    cluster: str
    failed: bool
    state: str
    error: str
    created_at: datetime
    anonymized_at: datetime | None


@router.get("/captures", response=list[CaptureOut])
def captures(
    request: ApiRequest, state: str = "", source: str = "", before: int = 0, limit: int = 100
) -> Any:
    """Captures without their text, newest first; ``before`` pages back by id."""
    request.auth.require("read")
    return _page(selectors.captures_matching(request.auth.project, state=state, source=source), before, limit)


@router.post("/feedback", response={200: ItemsOut, 400: ErrorOut})
def feedback_ingest(request: ApiRequest, body: ItemsIn) -> Any:
    """Send feedback on operations: ``{"operation", "metric", "value", "comment", "correction",
    "external_id"}``. It may come before the operation is known; a repeat updates its record."""
    request.auth.require("capture")
    results = services.signals_ingest(project=request.auth.project, items=body.items, by=request.auth)
    return {"results": results}


# cases, queue, labels ------------------------------------------------------------------------


class LabelOut(Schema):
    id: int
    case: int = Field(alias="case_id")
    kind: str
    severity: str
    correction: str
    note: str
    by: str
    created_at: datetime
    undone_at: datetime | None


class CaseOut(Schema):
    id: int
    capture: int = Field(alias="capture_id")
    family: str
    state: str
    title: str
    group: str = Field(alias="group_key")
    kind: str
    severity: str
    leased_by: str
    leased_until: datetime | None
    created_at: datetime


class CaseFullOut(CaseOut):
    external_id: str
    operation: str
    cluster: str
    content: dict[str, Any]
    labels: list[LabelOut]


def _full(case: FailureCase) -> dict[str, Any]:
    return {
        **CaseOut.from_orm(case).dict(by_alias=True),
        "external_id": case.capture.external_id,
        "operation": case.capture.operation,
        "cluster": case.capture.cluster,
        "content": case.capture.content or {},
        "labels": list(selectors.labels_of(case)),
    }


def _case(request: ApiRequest, case_id: int) -> FailureCase:
    rows = FailureCase.objects.select_related("project", "capture__version")
    found: FailureCase = get_or_404(rows, project=request.auth.project, pk=case_id)
    return found


@router.get("/cases", response=list[CaseOut])
def cases(
    request: ApiRequest,
    state: str = "",
    family: str = "",
    kind: str = "",
    group: str = "",
    q: str = "",
    before: int = 0,
    limit: int = 100,
) -> Any:
    """Failure cases without their text, newest first; ``before`` pages back by id."""
    request.auth.require("read")
    rows = selectors.cases_matching(
        request.auth.project, state=state, family=family, kind=kind, group=group, q=q
    )
    return _page(rows, before, limit)


@router.get("/cases/{case_id}", response={200: CaseFullOut, 404: ErrorOut})
def case(request: ApiRequest, case_id: int) -> Any:
    request.auth.require("read")
    return _full(_case(request, case_id))


class QueueIn(Schema):
    family: str = ""


class QueueOut(Schema):
    """``state`` is case, locked (all are leased; ask again at ``retry_at``) or done."""

    state: str
    case: CaseFullOut | None = None
    retry_at: datetime | None = None


@router.post("/queue/next", response=QueueOut)
def queue_next(request: ApiRequest, body: QueueIn | None = None) -> Any:
    """Lease the next case for ten minutes. Asking again returns the case that you hold."""
    request.auth.require("label")
    taken = services.queue_next(
        project=request.auth.project, by=request.auth, family=body.family if body else ""
    )
    if taken.case is not None:
        return {"state": "case", "case": _full(_case(request, taken.case.pk))}
    return {"state": "locked" if taken.retry_at else "done", "retry_at": taken.retry_at}


@router.post("/cases/{case_id}/lease", response={200: CaseOut, 409: ErrorOut})
def case_lease(request: ApiRequest, case_id: int) -> Any:
    """Lease this case, or extend your lease."""
    request.auth.require("label")
    return services.case_lease(case=_case(request, case_id), by=request.auth)


@router.post("/cases/{case_id}/skip", response={204: None, 409: ErrorOut})
def case_skip(request: ApiRequest, case_id: int) -> Any:
    request.auth.require("label")
    services.case_skip(case=_case(request, case_id), by=request.auth)
    return 204, None


class LabelIn(Schema):
    kind: str
    severity: str = ""
    correction: str = ""
    note: str = ""


@router.post("/cases/{case_id}/label", response={201: LabelOut, 400: ErrorOut, 409: ErrorOut})
def case_label(request: ApiRequest, case_id: int, body: LabelIn) -> Any:
    """Decide what went wrong. A second decision replaces your first."""
    request.auth.require("label")
    return 201, services.case_label(case=_case(request, case_id), by=request.auth, **body.dict())


@router.post("/labels/{label_id}/undo", response={200: CaseOut, 409: ErrorOut})
def label_undo(request: ApiRequest, label_id: int) -> Any:
    request.auth.require("label")
    label = get_or_404(Label.objects.filter(case__project=request.auth.project), pk=label_id)
    return services.label_undo(label=label, by=request.auth)


class SchemaOut(Schema):
    number: int
    kinds: list[dict[str, str]]
    severities: list[dict[str, str]]


class SchemaIn(Schema):
    kinds: list[dict[str, str]]
    severities: list[dict[str, str]]


@router.get("/label-schema", response=SchemaOut)
def label_schema(request: ApiRequest) -> Any:
    request.auth.require("read")
    return services.schema_in_force(request.auth.project)


@router.post("/label-schema", response={201: SchemaOut, 409: ErrorOut})
def label_schema_revise(request: ApiRequest, body: SchemaIn) -> Any:
    """Make the next revision. A used kind cannot vanish; a new title renames it."""
    request.auth.require("admin")
    return 201, services.schema_revise(project=request.auth.project, by=request.auth, **body.dict())


# tasks and datasets --------------------------------------------------------------------------


class AssetOut(Schema):
    id: int
    key: str
    number: int
    family: str = Field(alias="family.name")
    verifier: int = Field(alias="verifier_id")
    case: int | None = Field(alias="case_id")
    source: str
    split: str
    created_by: str
    created_at: datetime


class AssetFullOut(AssetOut):
    task: dict[str, Any]
    correction: str


class AssetIn(Schema):
    family: str


@router.post("/cases/{case_id}/asset", response={201: AssetFullOut, 400: ErrorOut, 409: ErrorOut})
def asset_create(request: ApiRequest, case_id: int, body: AssetIn) -> Any:
    """Make a task of a labelled case. Refused, with the reason, unless the correction passes the
    family's verifier and the failed answer does not."""
    request.auth.require("label")
    found = selectors.family_named(request.auth.project, body.family)
    if found is None:
        raise Refused(f"There is no family “{body.family[:60]}”.", code="family_unknown", status=404)
    return 201, services.asset_create(case=_case(request, case_id), family=found, by=request.auth)


@router.get("/assets", response=list[AssetOut])
def assets(
    request: ApiRequest,
    family: str = "",
    split: str = "",
    origin: str = "",
    before: int = 0,
    limit: int = 100,
) -> Any:
    request.auth.require("read")
    rows = selectors.assets_matching(request.auth.project, family=family, split=split, origin=origin)
    return _page(rows, before, limit)


@router.get("/assets/{asset_id}", response={200: AssetFullOut, 404: ErrorOut})
def asset(request: ApiRequest, asset_id: int) -> Any:
    request.auth.require("read")
    return get_or_404(TaskAsset.objects.select_related("family"), project=request.auth.project, pk=asset_id)


@router.delete("/assets/{asset_id}", response={204: None, 404: ErrorOut})
def asset_retire(request: ApiRequest, asset_id: int) -> Any:
    """Leave the task out of future datasets; those that exist keep it."""
    request.auth.require("training")
    found = get_or_404(TaskAsset.objects.all(), project=request.auth.project, pk=asset_id)
    services.asset_retire(asset=found, by=request.auth)
    return 204, None


class DatasetIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    kind: str = "rl"
    split: str = "train"
    families: list[str]


class DatasetOut(Schema):
    id: int
    name: str
    number: int
    kind: str
    split: str
    count: int
    digest: str = Field(alias="tasks_digest")
    created_by: str
    created_at: datetime


@router.get("/datasets", response=list[DatasetOut])
def datasets(request: ApiRequest, before: int = 0, limit: int = 100) -> Any:
    request.auth.require("read")
    return _page(selectors.datasets_of(request.auth.project), before, limit)


@router.post("/datasets", response={201: DatasetOut, 400: ErrorOut})
def dataset_create(request: ApiRequest, body: DatasetIn) -> Any:
    """The next version of a dataset, or the latest one if nothing would differ."""
    request.auth.require("training")
    return 201, services.dataset_create(project=request.auth.project, by=request.auth, **body.dict())


@router.get("/datasets/{dataset_id}", response={200: DatasetOut, 404: ErrorOut})
def dataset(request: ApiRequest, dataset_id: int) -> Any:
    request.auth.require("read")
    return get_or_404(Dataset.objects.all(), project=request.auth.project, pk=dataset_id)


@router.get("/datasets/{dataset_id}/export")
def dataset_export(request: ApiRequest, dataset_id: int) -> Any:
    """The JSONL file; its sha256 is the dataset's digest."""
    request.auth.require("read")
    found: Dataset = get_or_404(Dataset.objects.all(), project=request.auth.project, pk=dataset_id)
    return jsonl_response(found)


def jsonl_response(found: Dataset) -> HttpResponse:
    response = HttpResponse(services.dataset_bytes(found), content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="dataset-{found.pk}-v{found.number}.jsonl"'
    return response


# anonymization rules -------------------------------------------------------------------------


class RulesBody(Schema):
    """``patterns`` are ``{"entity", "regex"}``; thresholds per entity in [0, 1]; ``keep`` lists entities
    that are never masked."""

    allow: list[str] = Field(default_factory=list)
    deny: list[str] = Field(default_factory=list)
    thresholds: dict[str, float] = Field(default_factory=dict)
    patterns: list[dict[str, str]] = Field(default_factory=list)
    keep: list[str] = Field(default_factory=list)


class RulesOut(Schema):
    number: int
    rules: RulesBody


@router.get("/anonymization-rules", response=RulesOut)
def rules(request: ApiRequest) -> Any:
    request.auth.require("read")
    from apps.feedback.rules import rules_in_force

    found = rules_in_force(request.auth.project)
    return {"number": found.number, "rules": found.as_json()}


@router.post("/anonymization-rules", response={201: RulesOut, 400: ErrorOut})
def rules_revise(request: ApiRequest, body: RulesBody) -> Any:
    """Make the next revision; what was anonymized before stays as it is."""
    request.auth.require("admin")
    made = services.rules_revise(project=request.auth.project, rules=body.dict(), by=request.auth)
    return 201, {"number": made.number, "rules": made.rules}


class TryIn(Schema):
    rules: RulesBody
    text: str = Field(max_length=20_000)


class TryOut(Schema):
    text: str
    spans: list[dict[str, Any]]


@router.post("/anonymization-rules/try", response={200: TryOut, 400: ErrorOut})
def rules_try(request: ApiRequest, body: TryIn) -> Any:
    """What rules would do to a text. Nothing is stored."""
    request.auth.require("label")
    done = services.rules_try(rules=body.rules.dict(), text=body.text)
    return {"text": done.content["text"], "spans": done.spans}
