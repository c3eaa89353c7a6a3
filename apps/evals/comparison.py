"""Two runs over the cases that both have: one paired difference, what is left out, and the flips."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from apps.core.errors import Refused
from apps.evals.case_scores import CaseCounts, CaseFacts, case_counts, case_facts, moments, totals, value_on
from apps.evals.models import Case, Result, Run
from domain.intervals import Interval
from domain.paired import PairedDifference, cluster_bootstrap, paired_difference
from domain.sample_size import smallest_difference
from domain.slices import Sliced, slice_differences, slice_labels
from domain.summary import RunSummary, summary_of, verdict_sentence

BOOTSTRAP_SEED = 0
EXAMPLES = 5
MOVES = ("worse", "better")
_CHUNK = 500
_VERDICT_START = re.compile(r"^(better|worse|cannot tell( yet)?)\b[:;,.]? *", re.IGNORECASE)


class Flip(NamedTuple):
    """A case whose mean score moved. ``before`` and ``after`` are results of its first sample whose
    state differs, so that the row shows what changed."""

    case: Case
    before: Result
    after: Result
    up: bool


class Pairs(NamedTuple):
    """The shared cases, one entry each: mean score on both sides (None: not scored), source, facts."""

    cases: list[int]
    base: list[float | None]
    new: list[float | None]
    sources: list[str]
    facts: Mapping[int, CaseFacts]


class LeftOut(NamedTuple):
    """Cases that are not compared: ``changed`` have another revision on the other side, ``only_base``
    and ``only_new`` are the rest; ``examples`` names a few changed ones."""

    changed: int
    only_base: int
    only_new: int
    examples: list[str]

    @property
    def any(self) -> bool:
        return bool(self.changed or self.only_base or self.only_new)


class Comparison(NamedTuple):
    """``base`` and ``new`` are summaries over the shared cases only; ``only_base`` and ``only_new`` count
    the cases that the other run lacks, changed ones included. ``moved`` holds (case id, up) of every flip.
    """

    difference: PairedDifference
    sentence: str
    base: RunSummary
    new: RunSummary
    moved: list[tuple[int, bool]]
    only_base: int
    only_new: int
    same_version: bool
    pairs: Pairs
    left_out: LeftOut

    @property
    def after_badge(self) -> str:
        """The sentence without its first words, for a place where a badge says them."""
        return _VERDICT_START.sub("", self.sentence)

    @property
    def smallest(self) -> float | None:
        """The difference that so many cases would have shown four times out of five."""
        return None if self.difference.se is None else smallest_difference(self.difference.se)


def score_rows(run: Run, against: Run, found: Comparison) -> list[tuple[str, RunSummary]]:
    """Both rates for one axis, named by target, or by target and run where the targets are one."""
    if run.target_name != against.target_name:
        return [(run.target_name, found.new), (against.target_name, found.base)]
    return [
        (f"{run.target_name}, run {run.pk}", found.new),
        (f"{against.target_name}, run {against.pk}", found.base),
    ]


def run_comparison(run: Run, against: Run, axis: str = "") -> Comparison:
    """``run`` minus ``against`` over the cases that both have, paired, clustered by source.

    Cases are matched by exact revision; raises Refused when the runs share none. ``axis`` is what slices
    are wanted on, so that its values are read along.
    """
    if run.pk == against.pk:
        raise Refused("Choose another run: this one does not differ from itself.", code="same_run")
    return compare(run, against, case_counts(run), case_counts(against), axis)


def compare(
    run: Run,
    against: Run,
    new: Mapping[int, CaseCounts],
    base: Mapping[int, CaseCounts],
    axis: str = "",
) -> Comparison:
    """``run_comparison`` from counts at hand, for several runs against one base."""
    shared = sorted(new.keys() & base.keys())
    if not shared:
        raise Refused(
            "These runs have no case in common, so they cannot be compared.", code="no_common_cases"
        )
    facts = case_facts(run.suite_version, [axis] if axis else [])
    pairs = Pairs(
        cases=shared,
        base=[base[case].mean for case in shared],
        new=[new[case].mean for case in shared],
        sources=[facts[case].source for case in shared],
        facts=facts,
    )
    difference = paired_difference(pairs.base, pairs.new, pairs.sources)
    same_version = run.suite_version_id == against.suite_version_id
    return Comparison(
        difference=difference,
        sentence=verdict_sentence(difference),
        base=_summary(base, pairs),
        new=_summary(new, pairs),
        moved=_moved(pairs),
        only_base=len(base) - len(shared),
        only_new=len(new) - len(shared),
        same_version=same_version,
        pairs=pairs,
        left_out=_left_out(against, base.keys() - new.keys(), new.keys() - base.keys(), facts, same_version),
    )


def sliced(found: Comparison, axis: str) -> Sliced:
    """The paired difference on every value of ``axis``: “family”, “source”, or a tag that was read."""
    return slice_differences(
        found.pairs.base, found.pairs.new, found.pairs.sources, *slice_labels(_values(found, axis))
    )


def bootstrap(found: Comparison) -> Interval | None:
    """A check on the interval of the difference that assumes no distribution; the same each time."""
    rows = [
        (old, young, source)
        for old, young, source in zip(found.pairs.base, found.pairs.new, found.pairs.sources, strict=True)
        if old is not None and young is not None
    ]
    base, new, sources = ([row[at] for row in rows] for at in range(3))
    return cluster_bootstrap(
        base,  # type: ignore[arg-type]  # scored on both sides
        new,  # type: ignore[arg-type]
        sources,  # type: ignore[arg-type]
        np.random.default_rng(BOOTSTRAP_SEED),
    )


def flips_where(
    found: Comparison, *, moved: str = "", axis: str = "", slice_label: str = "", q: str = ""
) -> list[tuple[int, bool]]:
    """The flips one way, on one slice, whose case's id holds ``q``."""
    rows = found.moved
    if moved in MOVES:
        rows = [row for row in rows if row[1] == (moved == "better")]
    if axis and slice_label:
        labels, _ = slice_labels(_values(found, axis))
        inside = {case for case, own in zip(found.pairs.cases, labels, strict=True) if own == slice_label}
        rows = [row for row in rows if row[0] in inside]
    if q:
        wanted = q.casefold()
        rows = [row for row in rows if wanted in found.pairs.facts[row[0]].key.casefold()]
    return rows


def flips_of(run: Run, against: Run, moved: Sequence[tuple[int, bool]]) -> list[Flip]:
    """The rows of some flips, in their order: those to worse first."""
    flips: list[Flip] = []
    for start in range(0, len(moved), _CHUNK):
        part = moved[start : start + _CHUNK]
        cases = [case for case, _ in part]
        before, after = _results(against, cases), _results(run, cases)
        for case, up in part:
            if case in before and case in after:  # a result may have gone since the scores were read
                old, young = telling(before[case], after[case])
                flips.append(Flip(case=young.case, before=old, after=young, up=up))
    return flips


def telling(before: list[Result], after: list[Result]) -> tuple[Result, Result]:
    """The first pair of samples with different verdicts, else the first pair."""
    for old in before:
        for young in after:
            if {old.state, young.state} == {"passed", "failed"}:
                return old, young
    return before[0], after[0]


def _moved(pairs: Pairs) -> list[tuple[int, bool]]:
    rows = [
        (case, young > old)
        for case, old, young in zip(pairs.cases, pairs.base, pairs.new, strict=True)
        if old is not None and young is not None and old != young
    ]
    return sorted(rows, key=lambda flip: (flip[1], flip[0]))


def _left_out(
    against: Run, base: set[int], new: set[int], facts: Mapping[int, CaseFacts], same_version: bool
) -> LeftOut:
    if same_version or not (base and new):
        return LeftOut(0, len(base), len(new), [])
    older = case_facts(against.suite_version)
    before = {older[case].key for case in base if case in older}
    changed = sorted(before & {facts[case].key for case in new if case in facts})
    return LeftOut(len(changed), len(base) - len(changed), len(new) - len(changed), changed[:EXAMPLES])


def _values(found: Comparison, axis: str) -> list[str | None]:
    return [value_on(found.pairs.facts[case], axis) for case in found.pairs.cases]


def _summary(counts: Mapping[int, CaseCounts], pairs: Pairs) -> RunSummary:
    shared = [counts[case] for case in pairs.cases]
    return summary_of(totals(shared), moments(zip(pairs.sources, shared, strict=True)))


def _results(run: Run, cases: Sequence[int]) -> dict[int, list[Result]]:
    found: dict[int, list[Result]] = {}
    rows = run.results.filter(case__in=cases).select_related("case").order_by("case_id", "sample")
    for row in rows:
        found.setdefault(row.case_id, []).append(row)
    return found
