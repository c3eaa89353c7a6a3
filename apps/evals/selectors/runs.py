"""Reads of runs: counts, progress, what to retry, what to compare with. Sums are in ``sums``."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.core.models import Project, WorkUnit
from apps.evals.dimensions import TAG
from apps.evals.models import Result, Run, RunSlice, SuiteVersion
from apps.evals.selectors.sums import run_figures, run_summary, run_tally, tallies_of
from domain.summary import STATES, RunSummary
from domain.tally import Tally

_BROKEN = (Result.State.ERROR, Result.State.CANCELLED)


class Pace(NamedTuple):
    """``elapsed_s`` without pauses. ``per_s`` is the rate since the run last began to go on and
    ``rest_s`` what is left at that rate; None while nothing can be said, or the run stands still."""

    elapsed_s: float | None
    per_s: float | None
    rest_s: float | None


class RunCard(NamedTuple):
    """A run in a list: ``cost_usd`` is None where a price is unknown, ``elapsed_s`` before it began."""

    run: Run
    summary: RunSummary
    cost_usd: Decimal | None
    elapsed_s: float | None


def run_cards(runs: Iterable[Run]) -> list[RunCard]:
    """What a list shows of runs, in as many queries for one as for a hundred."""
    rows = list(runs)
    tallies = tallies_of(rows)
    return [
        RunCard(
            run,
            run_summary(run, tallies[run.pk]),
            run_figures(run, tallies[run.pk]).cost_usd,
            run_pace(run, 0).elapsed_s,
        )
        for run in rows
    ]


def run_counts(run: Run) -> dict[str, int]:
    """Results by state, and ``waiting``: what has no result yet."""
    tally = run_tally(run)
    return {
        **{state: tally.counts[state] for state in STATES},
        "waiting": max(0, run.total - tally.results),
    }


def state_counts(summary: RunSummary) -> list[tuple[str, str, int]]:
    """(state, label, count) for every state of a result, zeros included."""
    return [(state, label.lower(), getattr(summary, state)) for state, label in Result.State.choices]


def indexes_to_retry(run: Run) -> list[int]:
    """Lines of the suite's artifact whose case has an error, or a sample without a result."""
    rows = run.suite_version.suiteversioncase_set.order_by("index")
    broken = Q(case__in=run.results.filter(state__in=_BROKEN).values("case_id"))
    if run_counts(run)["waiting"]:
        last = run.sampling["samples"] - 1
        # Every sample of a case is stored at once, so a case without its last has none.
        broken |= ~Q(case__in=run.results.filter(sample=last).values("case_id"))
    return list(rows.filter(broken).values_list("index", flat=True))


def run_progress(run: Run, tally: Tally | None = None) -> dict[str, int]:
    """``done`` and ``total`` samples. What is planned again in a retry counts as not done."""
    if run.state not in (Run.State.RUNNING, Run.State.PAUSED):
        return {"done": (tally or run_tally(run)).results, "total": run.total}
    running = WorkUnit.objects.filter(owner=run.lineage_key, state=WorkUnit.State.RUNNING)
    under_way = sum(int(told.get("done", 0)) for told in running.values_list("progress", flat=True))
    return {"done": min(run.total, max(0, run.total - run.waiting + under_way)), "total": run.total}


def run_pace(run: Run, done: int) -> Pace:
    """How fast a run goes, from ``done`` of ``run_progress``."""
    if run.running_since is None:
        return Pace(run.ran_s or None, None, None)
    stretch = max(0.0, (timezone.now() - run.running_since).total_seconds())
    fresh = done - run.done_before
    if fresh <= 0 or stretch < 1:
        return Pace(run.ran_s + stretch, None, None)
    return Pace(run.ran_s + stretch, fresh / stretch, (run.total - done) * stretch / fresh)


def runs_of(project: Project) -> QuerySet[Run]:
    return Run.objects.filter(project=project).select_related(
        "suite_version__suite", "version__base", "deployment", "project"
    )


def run_rows(project: Project, *, q: str = "", state: str = "", suite: str = "") -> QuerySet[Run]:
    """Runs, newest first. ``q`` looks in the suite's name, the version's number, the endpoint's name."""
    rows = runs_of(project)
    if state:
        rows = rows.filter(state=state)
    if suite:
        rows = rows.filter(suite_version__suite_id=int(suite))
    if q:
        number = int(q) if q.isdecimal() and len(q) < 18 else 0
        rows = rows.filter(
            Q(pk=number)
            | Q(suite_version__suite__name__icontains=q)
            | Q(version__number__icontains=q)
            | Q(deployment__name__icontains=q, version=None)
        )
    return rows


def comparable_runs(run: Run) -> QuerySet[Run]:
    """Finished runs of the same suite, newest first."""
    return (
        runs_of(run.project)
        .filter(suite_version__suite=run.suite_version.suite_id, state=Run.State.DONE)
        .exclude(pk=run.pk)
    )


def run_to_compare(run: Run) -> Run | None:
    """The run that one would compare with first: the same suite, another target, the newest before it."""
    others = comparable_runs(run).filter(pk__lt=run.pk)
    if run.version_id is not None:
        return others.exclude(version=run.version_id).first() or others.first()
    return others.first()


def has_map(version: SuiteVersion) -> bool:
    """Whether its cases say how long their context is and how deep the answer lies in it."""
    return version.cases.filter(tags__has_key="length").exists()


def run_has_map(run: Run) -> bool:
    """``has_map`` for a run that has results, at a cost that does not grow with its suite."""
    return RunSlice.objects.filter(run=run, dimension=TAG + "length").exists()


def map_versions_of(project: Project) -> QuerySet[SuiteVersion]:
    return (
        SuiteVersion.objects.filter(suite__project=project, cases__tags__has_key="length")
        .select_related("suite")
        .distinct()
        .order_by("-pk")
    )
