"""What the dashboard shows of one suite: a point for each target, or for each run, and its families.

A point is a finished run. Scores, latencies and costs come from the sums beside the results, so the
page costs the same few queries whatever the runs hold.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from django.utils import timezone

from apps.evals.dimensions import FAMILY
from apps.evals.models import Run, RunSlice, Suite
from apps.evals.selectors.runs import runs_of
from apps.evals.selectors.sums import run_figures, run_summary, tallies_of
from domain.figures import Figures
from domain.summary import RunSummary, summary_of
from domain.tally import Tally

MAX_POINTS, MAX_RUNS, MAX_FAMILIES = 24, 400, 40
_PER = 1000


class Point(NamedTuple):
    """``label`` names the target."""

    run: Run
    label: str
    summary: RunSummary
    figures: Figures

    @property
    def cost_per_1000(self) -> Decimal | None:
        """USD for 1,000 samples; None where a price is unknown or nothing ran."""
        return self._cost_per(self.figures.results)

    @property
    def cost_per_pass(self) -> Decimal | None:
        """USD for one that passed; None without any."""
        cost = self._cost_per(self.summary.passed)
        return None if cost is None else cost / _PER

    @property
    def tokens_per_sample(self) -> float | None:
        figures = self.figures
        return figures.completion_tokens / figures.results if figures.results else None

    def _cost_per(self, count: int) -> Decimal | None:
        cost = self.figures.cost_usd
        return None if cost is None or not count else cost / count * _PER


class FamilyRow(NamedTuple):
    """``summaries`` stand in the order of the points; None where a run has no result of the family."""

    family: str
    summaries: list[RunSummary | None]


class Dashboard(NamedTuple):
    """``left_out`` older points are not shown."""

    points: list[Point]
    families: list[FamilyRow]
    left_out: int


def dashboard_of(
    suite: Suite, *, edition: str = "", family: str = "", by: str = "target", days: int = 0
) -> Dashboard:
    """``by`` "target": the newest finished run of each version and endpoint, versions in order, then
    endpoints; "run": all of them, oldest first. ``edition`` leaves out the other one and endpoints,
    ``family`` counts only its cases, ``days`` leaves out older runs."""
    rows = runs_of(suite.project).filter(suite_version__suite=suite, state=Run.State.DONE)
    if edition:
        rows = rows.filter(edition_kind=edition)
    if days:
        rows = rows.filter(finished_at__gte=timezone.now() - timedelta(days=days))
    runs = list(rows[:MAX_RUNS])
    if by == "target":
        runs = _newest_of_each(runs)
    else:
        runs.sort(key=lambda run: run.pk)
    shown = runs[-MAX_POINTS:]
    slices = _family_slices(shown)
    points = [point for point in _points(shown, slices, family) if point is not None]
    families = [] if family else _family_rows([point.run for point in points], slices)
    return Dashboard(points, families, len(runs) - len(shown))


def _newest_of_each(runs: Sequence[Run]) -> list[Run]:
    newest: dict[tuple[int | None, str, int], Run] = {}
    for run in runs:  # newest first
        deployment = 0 if run.version_id else run.deployment_id
        newest.setdefault((run.version_id, run.edition_kind, deployment), run)
    return sorted(newest.values(), key=_place)


def _place(run: Run) -> tuple[int, int, int, str]:
    if run.version is None:
        return (1, 0, 0, run.deployment.name)
    return (0, run.version.major, run.version.minor, run.edition_kind)


def _points(runs: Sequence[Run], slices: dict[int, dict[str, Tally]], family: str) -> list[Point | None]:
    if not family:
        tallies = tallies_of(runs)
        return [
            Point(run, run.target_name, run_summary(run, tallies[run.pk]), run_figures(run, tallies[run.pk]))
            for run in runs
        ]
    found: list[Point | None] = []
    for run in runs:
        tally = slices.get(run.pk, {}).get(family)
        if tally is None:
            found.append(None)
        else:
            summary = summary_of(tally.counts, tally.moments)
            found.append(Point(run, run.target_name, summary, run_figures(run, tally)))
    return found


def _family_slices(runs: Sequence[Run]) -> dict[int, dict[str, Tally]]:
    found: dict[int, dict[str, Tally]] = {}
    rows = RunSlice.objects.filter(run__in=[run.pk for run in runs], dimension=FAMILY)
    for row in rows.order_by("value").iterator(chunk_size=2_000):
        tally = Tally.of_row(vars(row))
        if tally.results:
            found.setdefault(row.run_id, {})[row.value] = tally
    return found


def _family_rows(runs: Sequence[Run], slices: dict[int, dict[str, Tally]]) -> list[FamilyRow]:
    """By name, at most ``MAX_FAMILIES``."""
    names = sorted({name for parts in slices.values() for name in parts})[:MAX_FAMILIES]
    return [FamilyRow(name, [_summary(slices.get(run.pk, {}).get(name)) for run in runs]) for name in names]


def _summary(tally: Tally | None) -> RunSummary | None:
    return None if tally is None else summary_of(tally.counts, tally.moments)
