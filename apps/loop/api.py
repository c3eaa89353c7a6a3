"""REST: demo turns."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.loop import services
from apps.loop.models import DemoTurn

router = Router(tags=["loop"])


class TurnIn(Schema):
    """Without ``seed`` one is drawn."""

    seed: int | None = Field(None, ge=0, le=services.MAX_SEED)


class LineOut(Schema):
    phase: str
    text: str
    seconds: float


class TurnOut(Schema):
    id: int
    seed: int
    status: str
    phase: str
    error: str
    sentence: str
    report: dict[str, Any] | None
    lines: list[LineOut]
    created_at: datetime
    finished_at: datetime | None


@router.get("/loop/turns", response=list[TurnOut])
def turns(request: ApiRequest) -> Any:
    """The latest twenty, newest first."""
    request.auth.require("read")
    rows = DemoTurn.objects.filter(project=request.auth.project).prefetch_related("lines")[:20]
    return [_out(turn) for turn in rows]


@router.post("/loop/turns", response={201: TurnOut, 409: ErrorOut})
def turn_start(request: ApiRequest, body: TurnIn) -> Any:
    """Start the demo turn: one whole turn of the loop on real requests. One runs at a time."""
    return 201, _out(services.turn_start(project=request.auth.project, seed=body.seed, by=request.auth))


@router.get("/loop/turns/{turn_id}", response={200: TurnOut, 404: ErrorOut})
def turn(request: ApiRequest, turn_id: int) -> Any:
    request.auth.require("read")
    return _out(get_or_404(DemoTurn.objects.filter(project=request.auth.project), pk=turn_id))


@router.post("/loop/turns/{turn_id}/cancel", response={200: TurnOut, 404: ErrorOut, 409: ErrorOut})
def turn_cancel(request: ApiRequest, turn_id: int) -> Any:
    """Stop driving it. What it had started goes on where it is."""
    request.auth.require("training")
    found = get_or_404(DemoTurn.objects.filter(project=request.auth.project), pk=turn_id)
    services.turn_cancel(turn=found, by=request.auth)
    found.refresh_from_db()
    return _out(found)


def _out(turn: DemoTurn) -> dict[str, Any]:
    lines = [
        {
            "phase": line.phase,
            "text": line.text,
            "seconds": (line.created_at - turn.created_at).total_seconds(),
        }
        for line in turn.lines.all()
    ]
    report = turn.report or {}
    return {
        "id": turn.pk, "seed": turn.seed, "status": turn.status, "phase": turn.phase, "error": turn.error,
        "sentence": report.get("sentence", ""), "report": turn.report, "lines": lines,
        "created_at": turn.created_at, "finished_at": turn.finished_at,
    }  # fmt: skip
