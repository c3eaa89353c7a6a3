"""REST: gates of suites, their decisions on runs."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.evals import selectors, services
from apps.evals.models import GateDecision, GateRevision, Run, Suite
from apps.evals.selectors import gates

router = Router(tags=["evals"])

RULES = (
    "Objects with a kind: coverage {min_coverage}, error_rate {max_rate}, floor {min_rate}, "
    "non_inferiority {margin, alpha}, no_regression {cases, tags, must}, latency {p95_ms}, "
    "cost {max_usd, max_tokens}, slice_floor {axis, value, min_rate}. Shares lie in [0, 1]."
)


class GateIn(Schema):
    """New rules replace the ones in force; an empty list takes the gate away."""

    rules: list[dict[str, Any]] = Field(description=RULES)
    blocks_release: bool = Field(True, description="Whether a version must have passed before it is released")
    reason: str = Field(min_length=1, max_length=2000, description="Goes into the audit trail")


class GateOut(Schema):
    number: int
    rules: list[dict[str, Any]]
    words: list[str] = Field(description="The rules as sentences, in the same order")
    blocks_release: bool
    digest: str
    reason: str
    created_by: str
    created_at: datetime

    @staticmethod
    def resolve_words(revision: GateRevision) -> list[str]:
        return [rule.words for rule in revision.parsed()]


class RuleResultOut(Schema):
    kind: str
    words: str
    state: str = Field(description="passed, failed or undecided")
    sentence: str
    figures: dict[str, Any]


class DecisionOut(Schema):
    id: int
    decision: str = Field(description="passed, failed or undecided; undecided is never a pass")
    sentence: str
    rules: list[RuleResultOut] = Field(alias="results")
    run_id: int
    baseline_id: int | None
    in_service_baseline: bool = Field(
        description="False where the baseline was named: such a decision opens no release"
    )
    revision: int = Field(alias="revision.number")
    suite: str = Field(alias="revision.suite.slug")
    suite_digest: str
    rules_digest: str
    run_digest: str
    baseline_digest: str
    digest: str
    url: str
    created_by: str
    created_at: datetime

    @staticmethod
    def resolve_url(decision: GateDecision) -> str:
        return decision.get_absolute_url()


class DecideIn(Schema):
    baseline_id: int | None = Field(
        None, description="A run of the same suite; without it the version in service"
    )


@router.get("/suites/{suite_id}/gate", response={200: GateOut, 404: ErrorOut}, summary="The rules in force")
def gate(request: ApiRequest, suite_id: int) -> Any:
    """404 where the suite has no gate."""
    request.auth.require("read")
    suite = _suite(request, suite_id)
    found = gates.gate_in_force(suite)
    return get_or_404(suite.gate_revisions, pk=found.pk if found else 0)


@router.get(
    "/suites/{suite_id}/gate/revisions", response=list[GateOut], summary="Every revision of the rules"
)
def gate_revisions(request: ApiRequest, suite_id: int, limit: int = 100) -> Any:
    """Newest first."""
    request.auth.require("read")
    return gates.gate_revisions_of(_suite(request, suite_id))[: max(1, min(limit, 500))]


@router.post(
    "/suites/{suite_id}/gate",
    response={201: GateOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Put new rules in force",
)
def gate_revise(request: ApiRequest, suite_id: int, body: GateIn) -> Any:
    request.auth.require("evals")
    return 201, services.gate_revise(
        suite=_suite(request, suite_id),
        rules=body.rules,
        blocks_release=body.blocks_release,
        reason=body.reason,
        by=request.auth,
    )


@router.get(
    "/runs/{run_id}/gate",
    response={200: DecisionOut, 404: ErrorOut},
    summary="What the gate decided on a run",
)
def run_gate(request: ApiRequest, run_id: int) -> Any:
    """The newest decision against the version in service; 404 where there is none yet."""
    request.auth.require("read")
    run = _run(request, run_id)
    found = gates.decision_of_run(run)
    return get_or_404(gates.project_decisions(request.auth.project), pk=found.pk if found else 0)


@router.post(
    "/runs/{run_id}/gate",
    response={200: DecisionOut, 400: ErrorOut, 403: ErrorOut, 404: ErrorOut, 409: ErrorOut},
    summary="Judge a run",
)
def run_judge(request: ApiRequest, run_id: int, body: DecideIn) -> Any:
    """By the rules in force. The same question has one answer: asking again gives the same decision."""
    request.auth.require("evals")
    run = _run(request, run_id)
    baseline = _run(request, body.baseline_id) if body.baseline_id is not None else None
    found = services.gate_decide(run=run, baseline=baseline, by=request.auth)
    return get_or_404(gates.project_decisions(request.auth.project), pk=found.pk)


@router.get("/gates", response=list[DecisionOut], summary="Decisions of gates")
def decisions(request: ApiRequest, suite_id: int | None = None, limit: int = 50) -> Any:
    """Newest first."""
    request.auth.require("read")
    rows = gates.project_decisions(request.auth.project)
    if suite_id is not None:
        rows = rows.filter(revision__suite=suite_id)
    return rows[: max(1, min(limit, 200))]


def _suite(request: ApiRequest, suite_id: int) -> Suite:
    found: Suite = get_or_404(Suite.objects.filter(project=request.auth.project), pk=suite_id)
    return found


def _run(request: ApiRequest, run_id: int) -> Run:
    run: Run = get_or_404(selectors.runs_of(request.auth.project), pk=run_id)
    return run
