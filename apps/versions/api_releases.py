"""REST: releases."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.versions import selectors, services
from apps.versions.api_versions import ReasonIn
from apps.versions.models import ModelVersion, Release

router = Router(tags=["releases"])


class StepIn(Schema):
    weight: float = Field(gt=0.0, le=1.0, description="Share of units that go to the candidate")
    min_units: int = Field(ge=1, description="Units that must reach the candidate before the step may end")


class PlanIn(Schema):
    """What is left out takes its default: 10 % and 50 %, α 0.05, a margin of 2 points."""

    steps: list[StepIn] | None = Field(None, description="Rising weights; after the last one comes promotion")
    alpha: float | None = Field(
        None, gt=0.0, lt=0.5, description="Chance of a false rollback, however often one looks"
    )
    margin: float | None = Field(
        None, ge=0.0, lt=1.0, description="How much higher the candidate's share of failed units may be"
    )
    srm_alpha: float | None = Field(
        None, gt=0.0, lt=0.5, description="Chance of a false alarm about the split"
    )
    failure_signals: list[str] | None = Field(
        None, description="What makes a unit failed: error, negative_feedback, correction, verifier"
    )


class ReleaseIn(ReasonIn):
    version_id: int
    plan: PlanIn | None = None
    override_gates: str = Field(
        "", max_length=2000, description="Why to release although a required gate did not pass. Recorded."
    )


class ArmOut(Schema):
    units: int
    failed: int


class SegmentOut(Schema):
    segment: int
    weight: float
    control: ArmOut
    canary: ArmOut


class ReleaseOut(Schema):
    id: int
    number: int
    state: str = Field(description="running, promoted, rolled_back or aborted")
    paused: bool
    warming: bool = Field(description="No traffic yet: engines are still loading the adapter")
    candidate_id: int
    candidate: str = Field(alias="candidate.number")
    control_id: int
    control: str = Field(alias="control.number")
    step: int = Field(alias="step_index", description="Counted from 0")
    weight: float = Field(description="Share of units on the candidate now")
    verdict: str = Field(description="The gate's last decision: advance, hold or roll_back")
    reasons: list[str]
    evidence: dict[str, Any] = Field(description="Figures of that decision")
    plan: dict[str, Any]
    units_at_end: int | None
    started_by: str
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ReleaseDetailOut(ReleaseOut):
    segments: list[SegmentOut] = Field(description="Units and failed units by the arm they were assigned to")

    @staticmethod
    def resolve_segments(release: Release) -> list[dict[str, Any]]:
        return [
            {
                "segment": index,
                "weight": segment.weight,
                "control": {"units": segment.control.units, "failed": segment.control.failures},
                "canary": {"units": segment.canary.units, "failed": segment.canary.failures},
            }
            for index, segment in enumerate(services.segments_of(release))
        ]


@router.get("/releases", response=list[ReleaseOut], summary="List releases")
def releases(request: ApiRequest, state: str = "", limit: int = 100) -> Any:
    """Newest first. ``state`` filters; ``limit`` is at most 500."""
    request.auth.require("read")
    rows = selectors.releases_of(request.auth.project)
    if state:
        rows = rows.filter(state=state)
    return rows[: max(1, min(limit, 500))]


@router.post(
    "/releases",
    response={201: ReleaseDetailOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Start a release",
)
def release_start(request: ApiRequest, body: ReleaseIn) -> Any:
    """Move traffic to a version in steps, judged after every unit. Needs the scope ``release``.

    Refused without a finished evaluation, while another release runs, for what is in service, and while a
    required gate did not pass, unless ``override_gates`` says why.
    """
    request.auth.require("release")
    candidate = get_or_404(
        ModelVersion.objects.filter(project=request.auth.project).select_related("project"),
        pk=body.version_id,
    )
    plan = body.plan.dict(exclude_none=True) if body.plan else None
    made = services.release_start(
        candidate=candidate,
        plan=plan,
        reason=body.reason,
        override_gates=body.override_gates,
        by=request.auth,
    )
    return 201, _release(request, made.pk)


@router.get("/releases/{release_id}", response={200: ReleaseDetailOut, 404: ErrorOut}, summary="One release")
def release(request: ApiRequest, release_id: int) -> Any:
    """With its counts per step and arm."""
    request.auth.require("read")
    return _release(request, release_id)


@router.post(
    "/releases/{release_id}/pause",
    response={200: ReleaseOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Pause a release",
)
def release_pause(request: ApiRequest, release_id: int, body: ReasonIn) -> Any:
    """Traffic stays where it is and the release does not advance; harm still rolls it back."""
    request.auth.require("release")
    return services.release_pause(release=_release(request, release_id), reason=body.reason, by=request.auth)


@router.post(
    "/releases/{release_id}/resume",
    response={200: ReleaseOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Resume a release",
)
def release_resume(request: ApiRequest, release_id: int, body: ReasonIn) -> Any:
    request.auth.require("release")
    return services.release_resume(release=_release(request, release_id), reason=body.reason, by=request.auth)


@router.post(
    "/releases/{release_id}/abort",
    response={200: ReleaseOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut},
    summary="Abort a release",
)
def release_abort(request: ApiRequest, release_id: int, body: ReasonIn) -> Any:
    """All traffic back to the control. A release that has ended is answered as it is."""
    request.auth.require("release")
    return services.release_abort(release=_release(request, release_id), reason=body.reason, by=request.auth)


@router.post(
    "/releases/{release_id}/acknowledge",
    response={200: ReleaseOut, 403: ErrorOut, 404: ErrorOut},
    summary="Acknowledge a rollback",
)
def release_acknowledge(request: ApiRequest, release_id: int) -> Any:
    """Someone has looked at it: it no longer waits for a person."""
    request.auth.require("release")
    found = _release(request, release_id)
    services.release_acknowledge(release=found, by=request.auth)
    return found


def _release(request: ApiRequest, release_id: int) -> Any:
    return get_or_404(selectors.releases_of(request.auth.project), pk=release_id)
