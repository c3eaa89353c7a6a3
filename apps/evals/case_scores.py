"""What a run says about each of its cases, and what is known about the cases: for comparing and gates.

One query a run and one a suite version, whatever their size; answers are never read.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import Count, Q

from apps.evals.dimensions import TAG, value_text
from apps.evals.models import Result, Run, SuiteVersion
from domain.intervals import RateMoments, moments_of
from domain.summary import STATES

_CHUNK = 5_000


class CaseCounts(NamedTuple):
    """Samples of one case in one run by state."""

    passed: int
    failed: int
    error: int
    unscored: int
    cancelled: int

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def mean(self) -> float | None:
        """Pass rate over the scored samples; None where none was scored."""
        return self.passed / self.scored if self.scored else None


class CaseFacts(NamedTuple):
    """``source`` is never empty: a case without one stands for itself."""

    key: str
    family: str
    source: str
    values: dict[str, str]  # of the axes that were asked for, where the case has one


def case_counts(run: Run) -> dict[int, CaseCounts]:
    """Counts by case id, of the cases that have a result."""
    by_state = {state: Count("pk", filter=Q(state=state)) for state in STATES}
    rows = Result.objects.filter(run=run).order_by().values("case_id").annotate(**by_state)
    fields = rows.values_list("case_id", *STATES).iterator(chunk_size=_CHUNK)
    return {case: CaseCounts(*counts) for case, *counts in fields}


def case_facts(version: SuiteVersion, axes: Iterable[str] = ()) -> dict[int, CaseFacts]:
    """Facts by case id in the order of the suite. ``axes`` are tags whose values are wanted."""
    wanted = {axis: axis.removeprefix(TAG) for axis in axes if axis not in ("family", "source")}
    rows = version.suiteversioncase_set.order_by("index").values_list(
        "case_id", "case__key", "case__family", "case__source", *(["case__tags"] if wanted else [])
    )
    found = {}
    for case, key, family, source, *rest in rows.iterator(chunk_size=_CHUNK):
        values = {}
        for axis, name in wanted.items():
            text = _text(rest[0].get(name))
            if text is not None:
                values[axis] = text
        found[case] = CaseFacts(key, family, source or f"case:{case}", values)
    return found


def value_on(facts: CaseFacts, axis: str) -> str | None:
    """The case's value on ``axis``: “family”, “source”, or a tag; None where it has none."""
    if axis == "family":
        return facts.family
    if axis == "source":
        return None if facts.source.startswith("case:") else facts.source
    return facts.values.get(axis)


def totals(counts: Iterable[CaseCounts]) -> dict[str, int]:
    """Samples by state."""
    sums = [sum(column) for column in zip(*counts, strict=True)] or [0] * len(STATES)
    return dict(zip(STATES, sums, strict=True))


def moments(rows: Iterable[tuple[str, CaseCounts]]) -> RateMoments:
    """Sums for the interval of the pass rate, clustered by the source given with each case."""
    clusters: dict[str, list[int]] = {}
    for source, counts in rows:
        held = clusters.setdefault(source, [0, 0])
        held[0] += counts.scored
        held[1] += counts.passed
    return moments_of((scored, passed) for scored, passed in clusters.values())


def _text(value: Any) -> str | None:
    return None if value is None else value_text(value)
