"""Reads of gates: the rules in force, the baseline, decisions, and what releases must have passed."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery

from apps.core.models import Project
from apps.core.registries import RequiredGate
from apps.evals.models import GateDecision, GateRevision, Run, Suite, SuiteVersion
from apps.versions.selectors import version_in_service

_BASELINES = 50


def gate_in_force(suite: Suite) -> GateRevision | None:
    """The newest revision; None where there is none, or where it took the gate away."""
    newest = suite.gate_revisions.first()
    return newest if newest is not None and newest.rules else None


def gate_revisions_of(suite: Suite) -> QuerySet[GateRevision]:
    return suite.gate_revisions.all()


def gate_baseline(run: Run) -> tuple[Run | None, str]:
    """The newest finished run of this suite by the version in service, or why there is none.

    One over the same suite version and edition goes first.
    """
    serving = version_in_service(run.project)
    if serving is None:
        return None, "No version is in service yet, so there is no baseline."
    if run.version_id == serving.pk:
        return None, f"This run is of {serving}, which is in service: there is nothing to compare it with."
    rows = Run.objects.filter(
        project=run.project,
        suite_version__suite=run.suite_version.suite_id,
        version=serving,
        state=Run.State.DONE,
    ).select_related("suite_version__suite", "version", "deployment", "project")
    found = list(rows.exclude(pk=run.pk)[:_BASELINES])
    if not found:
        return None, f"{serving}, in service, has no finished run of this suite. Run it once."
    return max(
        found,
        key=lambda row: (
            row.suite_version_id == run.suite_version_id,
            row.edition_kind == (run.edition_kind or "standard"),
            row.pk,
        ),
    ), ""


def decisions_of(suite: Suite) -> QuerySet[GateDecision]:
    """For lists, newest first."""
    return _whole(GateDecision.objects.filter(revision__suite=suite))


def project_decisions(project: Project) -> QuerySet[GateDecision]:
    return _whole(GateDecision.objects.filter(project=project))


def decision_of_run(run: Run) -> GateDecision | None:
    """The newest one against the version in service, else the newest."""
    rows = _whole(run.gate_decisions.all()).order_by("-in_service_baseline", "-pk")
    return rows.first()


class RunGate(NamedTuple):
    """What a run's page says: the newest decision, and whether one is on its way (``pending``) or has to be
    asked for (``askable``)."""

    decision: GateDecision | None
    revision: GateRevision
    pending: bool
    askable: bool


def run_gate(run: Run) -> RunGate | None:
    """None where the suite has no gate and never judged this run."""
    revision = gate_in_force(run.suite_version.suite)
    decision = decision_of_run(run)
    if revision is None:
        return None if decision is None else RunGate(decision, decision.revision, False, False)
    ended = run.state in (Run.State.DONE, Run.State.FAILED, Run.State.CANCELLED)
    current = decision is not None and run.finished_at is not None and decision.created_at >= run.finished_at
    soon = (
        run.state != Run.State.CANCELLED
        and not current
        and (run.finished_at is None or run.finished_at >= revision.created_at)
    )
    outdated = decision is not None and decision.revision_id != revision.pk
    return RunGate(decision, revision, soon, ended and not soon and (decision is None or outdated))


def _whole(rows: QuerySet[GateDecision]) -> QuerySet[GateDecision]:
    return rows.select_related(
        "run__version",
        "run__deployment",
        "run__suite_version__suite",
        "revision__suite",
        "baseline__version",
        "baseline__deployment",
    )


def runs_to_decide(limit: int = 20) -> QuerySet[Run]:
    """Ended runs of suites with a gate that were not decided since they ended, oldest first.

    Runs that ended before the rules in force were made are left for a person to ask about.
    """
    since: dict[int, datetime] = {}
    rows = GateRevision.objects.order_by("number").values_list("suite_id", "rules", "created_at")
    for suite, rules, moment in rows:
        since.pop(suite, None)
        if rules:
            since[suite] = moment
    ended = Q(pk__in=())
    for suite, moment in since.items():
        ended |= Q(suite_version__suite=suite, finished_at__gte=moment)
    decided = GateDecision.objects.filter(
        run=OuterRef("pk"), in_service_baseline=True, created_at__gte=OuterRef("finished_at")
    )
    return (
        Run.objects.filter(ended, ~Exists(decided), state__in=[Run.State.DONE, Run.State.FAILED])
        .select_related("suite_version__suite", "version__base", "deployment", "project")
        .order_by("finished_at", "pk")[:limit]
    )


def gates_required(project: Project) -> list[RequiredGate]:
    """Suites whose gate must have passed before a release, with what a decision must rest on."""
    suites = Suite.objects.filter(project=project, gate_revisions__isnull=False).distinct()
    rows = suites.prefetch_related(
        Prefetch("gate_revisions", queryset=GateRevision.objects.order_by("-number"), to_attr="gates")
    ).annotate(
        newest=Subquery(
            SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("number")[:1]
        )
    )
    return [
        RequiredGate(
            key=gate_key(suite),
            title=f"Gate of {suite}",
            url=gate.get_absolute_url(),
            stamp=gate_stamp(gate.number, suite.newest or 0),
        )
        for suite in rows
        if (gate := suite.gates[0]).rules and gate.blocks_release
    ]


def gate_key(suite: Suite) -> str:
    return f"evals.suite:{suite.pk}"


def gate_stamp(rules: int, suite_version: int) -> str:
    """What a decision rests on, as people read it."""
    return f"rules {rules} on v{suite_version}"


def gated(suites: Iterable[Suite]) -> set[int]:
    """Ids of the suites that have a gate in force."""
    ids = [suite.pk for suite in suites]
    newest: dict[int, list] = {}
    for suite, rules in (
        GateRevision.objects.filter(suite__in=ids).order_by("number").values_list("suite_id", "rules")
    ):
        newest[suite] = rules
    return {suite for suite, rules in newest.items() if rules}
