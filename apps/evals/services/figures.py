"""Sums beside the results: changed with every batch, or built anew from the results.

Both go the same way: a ``Rollup`` says what some cases change, and ``figures_apply`` adds it to the rows
of ``RunSlice`` and ``RunCluster``. The caller holds the lock of the run, so nothing is added twice.
"""

from collections.abc import Iterable, Iterator

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from apps.evals.adding_up import CHUNK, Stored, stored_cases
from apps.evals.dimensions import dimensions_of_version
from apps.evals.models import Run, RunCluster, RunSlice
from domain.tally import COUNTS, Part, Rollup, Tally

_MARK = "\x1f"
_HELD_PARTS = 500  # sums that are held in memory before they are written
_STORED = (*COUNTS, "sketches", "cases")


def figures_begin(run: Run) -> None:
    """An empty sum for a new run, and what its results will be added up by."""
    run.dimensions = dimensions_of_version(run.suite_version)
    run.save(update_fields=["dimensions"])
    RunSlice.objects.get_or_create(run=run, dimension="", value="")


def figures_apply(run: Run, rollup: Rollup) -> None:
    """Add a change to the stored sums. The caller holds the lock of the run."""
    _move_clusters(run, rollup)
    _add_slices(run, rollup)


def run_refigure(*, run: Run) -> None:
    """Build the sums of a run anew from its results, a few thousand of them at a time.

    What is held is the sums of some hundred parts and one chunk, however many results there are.
    """
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        RunSlice.objects.filter(run=locked).delete()
        RunCluster.objects.filter(run=locked).delete()
        figures_begin(locked)
        rollup = Rollup()
        for cases in _chunks(stored_cases([locked])):
            for stored in cases:
                rollup.change(stored.case, {}, stored.samples)
            _move_clusters(locked, rollup)
            rollup.sources.clear()
            if len(rollup.tallies) > _HELD_PARTS:
                _add_slices(locked, rollup)
                rollup = Rollup()
        _add_slices(locked, rollup)


def runs_refigure_missing(*, limit: int = 5) -> int:
    """Give sums to runs from before there were any; returns how many got them."""
    whole = RunSlice.objects.filter(run=OuterRef("pk"), dimension="", value="")
    runs = Run.objects.filter(~Exists(whole)).order_by("-pk")[:limit]
    for run in runs:
        run_refigure(run=run)
    return len(runs)


def _add_slices(run: Run, rollup: Rollup) -> None:
    known = {(row.dimension, row.value): Tally.of_row(vars(row)) for row in _slices(run, rollup.tallies)}
    rows = []
    for (dimension, value), change in rollup.tallies.items():
        tally = known.get((dimension, value), Tally())
        tally.merge(change)
        rows.append(RunSlice(run=run, dimension=dimension, value=value, **tally.as_row()))
    RunSlice.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["run", "dimension", "value"],
        update_fields=_STORED,
        batch_size=200,
    )


def _slices(run: Run, parts: Iterable[Part]) -> list[RunSlice]:
    by_dimension: dict[str, list[str]] = {}
    for dimension, value in parts:
        by_dimension.setdefault(dimension, []).append(value)
    wanted = Q()
    for dimension, values in by_dimension.items():
        wanted |= Q(dimension=dimension, value__in=values)
    return list(RunSlice.objects.filter(wanted, run=run)) if by_dimension else []


def _move_clusters(run: Run, rollup: Rollup) -> None:
    """Clusters of several cases: what they had before is in a table."""
    if not rollup.sources:
        return
    known = {row.source: row for row in RunCluster.objects.filter(run=run, source__in=list(rollup.sources))}
    for source, moved in rollup.sources.items():
        row = known.setdefault(source, RunCluster(run=run, source=source))
        for part, (rows, passed) in moved.items():
            key = _MARK.join(part)
            old_rows, old_passed = row.parts.get(key, (0, 0))
            new = (old_rows + rows, old_passed + passed)
            rollup.move_cluster(part, (old_rows, old_passed), new)
            row.parts[key] = list(new)
    RunCluster.objects.bulk_create(
        known.values(),
        update_conflicts=True,
        unique_fields=["run", "source"],
        update_fields=["parts"],
        batch_size=200,
    )


def _chunks(cases: Iterable[Stored]) -> Iterator[list[Stored]]:
    chunk: list[Stored] = []
    size = 0
    for stored in cases:
        chunk.append(stored)
        size += len(stored.samples)
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
