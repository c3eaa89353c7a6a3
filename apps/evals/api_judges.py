"""REST: judges, their calibrations against people, gold answers, and warnings about scores by judges."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Query, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.evals.judge_warnings import judge_warnings
from apps.evals.models import SuiteVersion
from apps.feedback import judge_selectors as selectors
from apps.feedback import services
from apps.feedback.judge_items import MAX_ITEMS
from apps.feedback.judge_replies import replies_to
from apps.feedback.models import Calibration, Judge

router = Router(tags=["judges"])


class JudgeIn(Schema):
    """``params`` are those of the verifier ``kind``, without a question: every answer brings its own."""

    name: str = Field(min_length=1, max_length=100)
    kind: Literal["judge", "label", "pairwise"]
    params: dict[str, Any]
    note: str = Field(default="", max_length=200)


class JudgeOut(Schema):
    id: int
    name: str
    number: int
    kind: str
    params: dict[str, Any]
    note: str
    created_by: str
    created_at: datetime


class CalibrationOut(Schema):
    """``kappa`` is null where it is undefined, ``figures`` until the calibration is done."""

    id: int
    judge: int = Field(alias="judge_id")
    number: int
    state: str
    size: int
    taken: dict[str, Any]
    kappa: float | None
    figures: dict[str, Any] | None
    doubts: list[str]
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    error: str
    started_by: str
    started_at: datetime
    finished_at: datetime | None


class CalibrateIn(Schema):
    limit: int = Field(default=MAX_ITEMS, ge=2, le=MAX_ITEMS)


class VoteOut(Schema):
    voice: str
    passed: bool | None
    silence: str
    reason: str


class JudgedOut(Schema):
    """``human`` and ``judged`` say "passes"; ``judged`` is null where the judge decided nothing."""

    index: int
    title: str
    origin: str
    case: int | None = Field(alias="case_id")
    gold: int | None = Field(alias="gold_id")
    human: bool
    judged: bool | None
    silence: str
    score: float | None
    reasons: list[str]
    votes: list[VoteOut]


class JudgedTextOut(JudgedOut):
    """With the texts; ``gone`` where they are not kept any more."""

    messages: list[dict[str, Any]]
    answer: str
    baseline: str
    replies: list[dict[str, Any]]
    gone: bool


class GoldIn(Schema):
    question: str
    answer: str
    passes: bool
    baseline: str = ""
    source: str = ""


class GoldOut(Schema):
    id: int
    question: str
    answer: str
    baseline: str
    passes: bool
    source: str
    added_by: str
    created_at: datetime


class GoldCounts(Schema):
    added: int
    changed: int
    same: int


@router.get("/judges", response=list[JudgeOut])
def judges(request: ApiRequest, name: str = "", limit: int = 100, offset: int = 0) -> Any:
    """All versions, by name and newest first."""
    request.auth.require("read")
    rows = selectors.judges_of(request.auth.project)
    rows = rows.filter(name=name) if name else rows
    return _slice(rows, limit, offset)


@router.post("/judges", response={201: JudgeOut, 400: ErrorOut, 409: ErrorOut})
def judge_save(request: ApiRequest, body: JudgeIn) -> Any:
    """Save the next version of a judge."""
    request.auth.require("evals")
    return 201, services.judge_save(project=request.auth.project, **body.dict(), by=request.auth)


@router.get("/judges/{judge_id}", response={200: JudgeOut, 404: ErrorOut})
def judge(request: ApiRequest, judge_id: int) -> Any:
    request.auth.require("read")
    return _judge(request, judge_id)


@router.get("/judges/{judge_id}/calibrations", response={200: list[CalibrationOut], 404: ErrorOut})
def calibrations(request: ApiRequest, judge_id: int, limit: int = 50, offset: int = 0) -> Any:
    """Calibrations of this version, newest first."""
    request.auth.require("read")
    return _slice(_judge(request, judge_id).calibrations.all(), limit, offset)


@router.post(
    "/judges/{judge_id}/calibrations",
    response={202: CalibrationOut, 400: ErrorOut, 404: ErrorOut, 409: ErrorOut},
)
def calibration_start(request: ApiRequest, judge_id: int, body: CalibrateIn) -> Any:
    """Ask the judge about answers that people have judged."""
    request.auth.require("evals")
    return 202, services.calibration_start(judge=_judge(request, judge_id), limit=body.limit, by=request.auth)


@router.get("/calibrations/{calibration_id}", response={200: CalibrationOut, 404: ErrorOut})
def calibration(request: ApiRequest, calibration_id: int) -> Any:
    request.auth.require("read")
    return _calibration(request, calibration_id)


@router.post(
    "/calibrations/{calibration_id}/cancel", response={200: CalibrationOut, 404: ErrorOut, 409: ErrorOut}
)
def calibration_cancel(request: ApiRequest, calibration_id: int) -> Any:
    request.auth.require("evals")
    found = _calibration(request, calibration_id)
    services.calibration_cancel(calibration=found, by=request.auth)
    return _calibration(request, calibration_id)


@router.get("/calibrations/{calibration_id}/answers", response={200: list[JudgedOut], 404: ErrorOut})
def judged_answers(
    request: ApiRequest,
    calibration_id: int,
    only: Literal["", "wrong", "undecided", "right"] = Query(""),
    limit: int = 100,
    offset: int = 0,
) -> Any:
    """``only=wrong`` lists where the judge and people disagree."""
    request.auth.require("read")
    return _slice(selectors.judged_answers(_calibration(request, calibration_id), only), limit, offset)


@router.get("/calibrations/{calibration_id}/answers/{index}", response={200: JudgedTextOut, 404: ErrorOut})
def judged_answer(request: ApiRequest, calibration_id: int, index: int) -> Any:
    """One answer with its texts and what every judge replied."""
    request.auth.require("read")
    row = get_or_404(selectors.judged_answers(_calibration(request, calibration_id)), index=index)
    texts = replies_to(row)._asdict()
    return {**JudgedOut.from_orm(row).dict(by_alias=True), **texts}


@router.get("/gold-answers", response=list[GoldOut])
def gold(request: ApiRequest, limit: int = 100, offset: int = 0) -> Any:
    """Gold answers in use, newest first."""
    request.auth.require("read")
    return _slice(selectors.gold_of(request.auth.project), limit, offset)


@router.post("/gold-answers", response={200: GoldCounts, 400: ErrorOut})
def gold_add(request: ApiRequest, body: list[GoldIn]) -> Any:
    """Add answers with the verdict that people settled on. All or nothing, and safe to send again."""
    request.auth.require("evals")
    items = [item.dict() for item in body]
    return services.gold_add(project=request.auth.project, items=items, by=request.auth)


@router.post("/gold-answers/{gold_id}/retire", response={204: None, 404: ErrorOut, 409: ErrorOut})
def gold_retire(request: ApiRequest, gold_id: int) -> Any:
    request.auth.require("evals")
    gold = get_or_404(request.auth.project.gold_answers.all(), pk=gold_id)
    services.gold_retire(gold=gold, by=request.auth)
    return 204, None


@router.get("/suite-versions/{version_id}/judge-warnings", response={200: list[str], 404: ErrorOut})
def warnings(request: ApiRequest, version_id: int) -> Any:
    """What speaks against scores that judges give to cases of this suite version; empty: nothing."""
    request.auth.require("read")
    rows = SuiteVersion.objects.filter(suite__project=request.auth.project).select_related("suite__project")
    return judge_warnings(get_or_404(rows, pk=version_id))


def _slice(rows: Any, limit: int, offset: int) -> Any:
    start = max(0, min(offset, 10_000_000))
    return rows[start : start + max(1, min(limit, 500))]


def _judge(request: ApiRequest, judge_id: int) -> Judge:
    found: Judge = get_or_404(selectors.judges_of(request.auth.project), pk=judge_id)
    return found


def _calibration(request: ApiRequest, calibration_id: int) -> Calibration:
    found: Calibration = get_or_404(selectors.calibrations_of(request.auth.project), pk=calibration_id)
    return found
