"""What the results of a run add up to, kept as integers so that adding and taking back are exact.

A ``Tally`` is the sum over some samples: counts by state, tokens, bins of latencies, and what an
interval needs of clusters. A ``Rollup`` is the change that some cases make to the tallies of the
parts of a run that they belong to. Adding batch by batch, in any order and with retries, gives the
same numbers as adding everything at once.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from domain.intervals import RateMoments
from domain.sketch import bin_of
from domain.summary import STATES

MICRO = 1_000_000
COUNTS = (
    *STATES,
    "answered",  # has an answer that could be judged
    "flagged",  # a detector found it suspicious
    "cached",
    "attempts",
    "prompt_tokens",
    "completion_tokens",
    "paid_prompt_tokens",  # not those of cached answers, but those of errors that a retry replaced
    "paid_completion_tokens",
    "score_e6",  # sum of scores in millionths
    "clusters",  # with a scored sample
    "rows_rows",  # sums over clusters of n², n·passed and passed²
    "rows_passed",
    "passed_passed",
)
SKETCHES = ("ttft_ms", "per_token_ms", "latency_ms")


class Sample(NamedTuple):
    """What of one result is added up. ``earlier_…`` tokens are those of errors that it replaced."""

    state: str
    score: float | None = None
    answered: bool = False
    flagged: bool = False
    cached: bool = False
    attempts: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    earlier_prompt_tokens: int = 0
    earlier_completion_tokens: int = 0
    ttft_ms: float | None = None
    per_token_ms: float | None = None
    latency_ms: float | None = None


@dataclass
class Tally:
    """``cases`` counts cases by (scored samples, passed samples); ``sketches`` leave cached answers out."""

    counts: Counter[str] = field(default_factory=Counter)
    sketches: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in SKETCHES})
    cases: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def scored(self) -> int:
        return self.counts["passed"] + self.counts["failed"]

    @property
    def results(self) -> int:
        return sum(self.counts[state] for state in STATES)

    @property
    def moments(self) -> RateMoments:
        counts = self.counts
        return RateMoments(
            n=self.scored,
            passed=counts["passed"],
            clusters=counts["clusters"],
            rows_rows=counts["rows_rows"],
            rows_passed=counts["rows_passed"],
            passed_passed=counts["passed_passed"],
        )

    def add(self, sample: Sample, times: int = 1) -> None:
        """``times`` = −1 takes a sample back that was added before."""
        counts = self.counts
        counts[sample.state] += times
        counts["answered"] += times * sample.answered
        counts["flagged"] += times * sample.flagged
        counts["cached"] += times * sample.cached
        counts["attempts"] += times * sample.attempts
        counts["prompt_tokens"] += times * sample.prompt_tokens
        counts["completion_tokens"] += times * sample.completion_tokens
        fresh = 0 if sample.cached else times
        counts["paid_prompt_tokens"] += fresh * sample.prompt_tokens + times * sample.earlier_prompt_tokens
        counts["paid_completion_tokens"] += (
            fresh * sample.completion_tokens + times * sample.earlier_completion_tokens
        )
        if sample.score is not None:
            counts["score_e6"] += times * round(sample.score * MICRO)
        if not sample.cached:
            for name in SKETCHES:
                value = getattr(sample, name)
                place = None if value is None else bin_of(value)
                if place is not None:
                    self.sketches[name][place] += times

    def add_case(self, scored: int, passed: int, times: int = 1) -> None:
        self.cases[scored, passed] += times

    def add_cluster(self, scored: int, passed: int, times: int = 1) -> None:
        """A cluster with ``scored`` rows; one without any is none."""
        if scored:
            self.counts["clusters"] += times
            self.counts["rows_rows"] += times * scored * scored
            self.counts["rows_passed"] += times * scored * passed
            self.counts["passed_passed"] += times * passed * passed

    def merge(self, other: "Tally") -> None:
        for name, count in other.counts.items():
            self.counts[name] += count
        for name, bins in other.sketches.items():
            _merge(self.sketches[name], bins)
        _merge(self.cases, other.cases)

    def as_row(self) -> dict[str, Any]:
        """Columns of a table: every count, and two JSON values without zeros, in a fixed order."""
        return {
            **{name: self.counts[name] for name in COUNTS},
            "sketches": {
                name: {str(place): held for place, held in sorted(bins.items()) if held}
                for name, bins in self.sketches.items()
            },
            "cases": {f"{n}:{passed}": held for (n, passed), held in sorted(self.cases.items()) if held},
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        made = cls(counts=Counter({name: row[name] for name in COUNTS}))
        for name, bins in row["sketches"].items():
            made.sketches[name] = Counter({int(place): held for place, held in bins.items()})
        for key, held in row["cases"].items():
            n, _, passed = key.partition(":")
            made.cases[int(n), int(passed)] = held
        return made


Part = tuple[str, str]  # dimension and value; ("", "") is the whole run
WHOLE: Part = ("", "")


class CaseOf(NamedTuple):
    """Where a case belongs. ``source`` is the cluster it shares with others, "" where it stands alone."""

    parts: Sequence[Part]
    source: str


class Rollup:
    """The change of every part's tally. Clusters that reach beyond one case are only collected, in
    ``sources``: (rows, passed) by source and part, to be added to what they had before."""

    def __init__(self) -> None:
        self.tallies: defaultdict[Part, Tally] = defaultdict(Tally)
        self.sources: defaultdict[str, defaultdict[Part, list[int]]] = defaultdict(
            lambda: defaultdict(lambda: [0, 0])
        )

    def change(
        self,
        case: CaseOf,
        before: Mapping[int, Sample],
        after: Mapping[int, Sample],
    ) -> None:
        """One case had the samples ``before`` and has ``after``, each by its number."""
        old, new = _scored(before), _scored(after)
        delta = Tally()
        for number, sample in before.items():
            if after.get(number) != sample:
                delta.add(sample, -1)
        for number, sample in after.items():
            if before.get(number) != sample:
                delta.add(sample)
        if before:
            delta.add_case(*old, -1)
        if after:
            delta.add_case(*new)
        if not case.source:
            delta.add_cluster(*old, -1)
            delta.add_cluster(*new)
        for part in case.parts:
            self.tallies[part].merge(delta)
            if case.source and old != new:
                held = self.sources[case.source][part]
                held[0] += new[0] - old[0]
                held[1] += new[1] - old[1]

    def move_cluster(self, part: Part, old: tuple[int, int], new: tuple[int, int]) -> None:
        """A cluster of several cases went from ``old`` to ``new`` (rows, passed)."""
        self.tallies[part].add_cluster(*old, -1)
        self.tallies[part].add_cluster(*new)


def _scored(samples: Mapping[int, Sample]) -> tuple[int, int]:
    passed = sum(sample.state == "passed" for sample in samples.values())
    return passed + sum(sample.state == "failed" for sample in samples.values()), passed


def _merge(held: Counter[Any], other: Mapping[Any, int]) -> None:
    for key, count in other.items():
        held[key] += count
        if not held[key]:
            del held[key]
