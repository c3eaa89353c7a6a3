"""Reads of what runs add up to: the whole of a run, its families, the values of a tag.

Everything here reads the sums beside the results, never the results, so that its cost does not grow
with the run. Only a run from before there were sums is added up on the spot.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from apps.evals.adding_up import stored_cases
from apps.evals.dimensions import FAMILY, TAG
from apps.evals.models import Run, RunSlice, Suite
from domain.figures import (
    Figures,
    MeanOfGroups,
    PassAt,
    Percentiles,
    figures_of,
    mean_of_groups,
    pass_at_rows,
)
from domain.summary import RunSummary, summary_of
from domain.tally import WHOLE, CaseOf, Rollup, Tally

_ENDED_EARLY = (Run.State.CANCELLED, Run.State.FAILED)


class SliceRow(NamedTuple):
    """One family, or one value of a tag. The summary covers the results that are there."""

    value: str
    summary: RunSummary
    figures: Figures
    tally: Tally

    @property
    def n(self) -> int:
        return self.summary.total


def tallies_of(runs: Iterable[Run]) -> dict[int, Tally]:
    """What each run adds up to, in one query (and one more where some run has no sums yet)."""
    by_id = {run.pk: run for run in runs}
    rows = RunSlice.objects.filter(run__in=list(by_id), dimension="", value="")
    found = {row.run_id: Tally.of_row(vars(row)) for row in rows}
    if missing := [run for pk, run in by_id.items() if pk not in found]:
        found |= _added_up(missing)
    return found


def run_tally(run: Run) -> Tally:
    return tallies_of([run])[run.pk]


def run_summary(run: Run, tally: Tally | None = None) -> RunSummary:
    """Clusters are sources where cases have them, else cases (repeated samples of one case).

    Coverage is over all samples that the run was asked for: what a run that ended early never ran counts
    as cancelled, and a running run is not complete.
    """
    tally = run_tally(run) if tally is None else tally
    return summary_of(
        tally.counts,
        tally.moments,
        total=run.total,
        missing_state="cancelled" if run.state in _ENDED_EARLY else "",
    )


def summaries_of(runs: Iterable[Run]) -> dict[int, RunSummary]:
    """Summaries of many runs with one query."""
    by_id = {run.pk: run for run in runs}
    tallies = tallies_of(by_id.values())
    return {pk: run_summary(run, tallies[pk]) for pk, run in by_id.items()}


def run_figures(run: Run, tally: Tally | None = None) -> Figures:
    """Cost, tokens, latencies, attempts and what was judged."""
    return figures_of(
        run_tally(run) if tally is None else tally,
        input_usd_per_mtok=run.input_usd_per_mtok,
        output_usd_per_mtok=run.output_usd_per_mtok,
    )


def run_pass_at(run: Run, tally: Tally | None = None) -> list[PassAt]:
    """pass@k and pass^k, for runs with several samples per case."""
    return pass_at_rows(run_tally(run) if tally is None else tally, run.sampling["samples"])


class LatencyRow(NamedTuple):
    """``measured_ms`` are p50, p90, p95 and p99 as text, with as many digits as the sketch is good for."""

    name: str
    measured: Percentiles | None

    @property
    def measured_ms(self) -> list[str]:
        return [_three_digits(value) for value in self.measured[:4]] if self.measured else []


def latency_rows(figures: Figures) -> list[LatencyRow]:
    """The three latencies by name."""
    return [
        LatencyRow("First token", figures.ttft),
        LatencyRow("Per token after it", figures.per_token),
        LatencyRow("Whole answer", figures.latency),
    ]


def family_rows(run: Run) -> list[SliceRow]:
    """The families of a run by name; none where there are too many to list."""
    return _rows(run, FAMILY)


def families_run(suite: Suite) -> list[str]:
    """Families by name that runs of the suite are added up by: asked of the sums, not of the cases."""
    rows = RunSlice.objects.filter(run__suite_version__suite=suite, dimension=FAMILY)
    return list(rows.order_by("value").values_list("value", flat=True).distinct())


def slice_rows(run: Run, tag: str) -> list[SliceRow]:
    """The values of one tag by name; none for a tag that the run is not added up by."""
    return _rows(run, TAG + tag)


def tags_of(run: Run) -> list[str]:
    """Names of the tags that the run is added up by."""
    return [name.removeprefix(TAG) for name in run.dimensions or [] if name.startswith(TAG)]


def families_mean(rows: Iterable[SliceRow]) -> MeanOfGroups | None:
    """The unweighted mean of the families' pass rates; None with fewer than two that have an interval."""
    return mean_of_groups([row.tally.moments for row in rows])


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _rows(run: Run, dimension: str) -> list[SliceRow]:
    found = []
    for row in RunSlice.objects.filter(run=run, dimension=dimension).order_by("value"):
        tally = Tally.of_row(vars(row))
        if tally.results:
            summary = summary_of(tally.counts, tally.moments)
            found.append(SliceRow(row.value, summary, run_figures(run, tally), tally))
    return found


def _added_up(runs: list[Run]) -> dict[int, Tally]:
    """What runs add up to that have no sums yet, from one stream over their results."""
    found = {run.pk: Tally() for run in runs}
    clusters: defaultdict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for stored in stored_cases(runs):
        rollup = Rollup()
        rollup.change(CaseOf([WHOLE], stored.case.source), {}, stored.samples)
        found[stored.run].merge(rollup.tallies[WHOLE])
        for source, parts in rollup.sources.items():
            rows, passed = parts[WHOLE]
            held = clusters[stored.run, source]
            held[0], held[1] = held[0] + rows, held[1] + passed
    for (run, _), (scored, passed) in clusters.items():
        found[run].add_cluster(scored, passed)
    return found
