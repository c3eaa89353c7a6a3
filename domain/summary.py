"""What a run says, as numbers and as words. All counts are always shown."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from domain.intervals import Interval, RateMoments, clustered_rate, rate_interval, wilson
from domain.paired import PairedDifference, more_cases

STATES = ("passed", "failed", "error", "unscored", "cancelled")
GATE_COVERAGE = 0.95


class RunSummary(NamedTuple):
    """Counts by state. ``pass_rate`` = passed / scored and ``coverage`` = scored / total are None
    where they have no denominator; ``interval`` is None where n is too small."""

    passed: int
    failed: int
    error: int
    unscored: int
    cancelled: int
    scored: int
    total: int
    pass_rate: float | None
    interval: Interval | None
    coverage: float | None

    @property
    def decidable(self) -> bool:
        """Whether coverage is high enough for a gate; otherwise the gate is undecided."""
        return self.coverage is not None and self.coverage >= GATE_COVERAGE


def summarize(
    states: Sequence[str], sources: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> RunSummary:
    """Summary over result states, one per row. ``sources`` are the clusters: the case id for
    repeated samples, or what cases share. Raises ``ValueError`` on an unknown state."""
    counts = Counter(states)
    if unknown := set(counts) - set(STATES):
        raise ValueError(f"unknown result states: {sorted(unknown)}")
    if sources is not None and len(sources) != len(states):
        raise ValueError("states and sources must have equal length")
    scored = counts["passed"] + counts["failed"]
    return RunSummary(
        passed=counts["passed"],
        failed=counts["failed"],
        error=counts["error"],
        unscored=counts["unscored"],
        cancelled=counts["cancelled"],
        scored=scored,
        total=len(states),
        pass_rate=counts["passed"] / scored if scored else None,
        interval=_interval(states, sources, counts["passed"], scored, confidence),
        coverage=scored / len(states) if states else None,
    )


def summary_of(
    counts: Mapping[str, int],
    moments: RateMoments,
    *,
    total: int | None = None,
    missing_state: str = "",
    confidence: float = 0.95,
) -> RunSummary:
    """``summarize`` from counts that were kept. Of ``total`` samples those that have no result are only
    missing from the coverage, or counted under ``missing_state``."""
    held = {state: counts.get(state, 0) for state in STATES}
    known = sum(held.values())
    total = known if total is None else max(total, known)
    if missing_state:
        held[missing_state] += total - known
    scored = held["passed"] + held["failed"]
    return RunSummary(
        **held,
        scored=scored,
        total=total,
        pass_rate=held["passed"] / scored if scored else None,
        interval=rate_interval(moments, confidence),
        coverage=scored / total if total else None,
    )


def mean_by_case(scores: Iterable[tuple[Hashable, float | None]]) -> dict[Hashable, float | None]:
    """Mean score of each case over its samples; None where no sample of it was scored."""
    found: dict[Hashable, list[float]] = {}
    for case, score in scores:
        found.setdefault(case, []).extend([] if score is None else [score])
    return {case: sum(values) / len(values) if values else None for case, values in found.items()}


def score_text(rate: float | None, interval: Interval | None, n: int | None = None) -> str:
    """``71 % (64–77), n = 212, 40 sources``; no digit finer than the interval.

    Without an interval: ``n too small (n = 1)``, or ``no data`` where nothing was scored.
    """
    if rate is None:
        return "no data"
    if interval is None:
        return "n too small" if n is None else f"n too small (n = {n})"
    digits = _digits(interval.high - interval.low)
    values = [f"{100 * value:.{digits}f}" for value in (rate, interval.low, interval.high)]
    text = f"{values[0]} % ({values[1]}–{values[2]}), n = {interval.n:,}"
    if interval.clusters is not None and interval.clusters != interval.n:
        text += f", {interval.clusters:,} sources"
    return text


def coverage_text(summary: RunSummary) -> str:
    """``80 of 90 scored answers passed, 10 errors, coverage 90 %``: never a bare rate."""
    if summary.coverage is None:
        return "no results"
    parts = [f"{summary.passed:,} of {_plural(summary.scored, 'scored answer')} passed"]
    for count, one, many in (
        (summary.error, "error", "errors"),
        (summary.unscored, "unscored", "unscored"),
        (summary.cancelled, "cancelled", "cancelled"),
    ):
        if count:
            parts.append(f"{count:,} {one if count == 1 else many}")
    # Rounded down, so that 99.6 % never reads as complete.
    parts.append(f"coverage {math.floor(100 * summary.coverage + 1e-9)} %")
    return ", ".join(parts)


def verdict_sentence(difference: PairedDifference, settle: float = 0.03) -> str:
    """The comparison in words. ``settle`` is the difference worth settling, as a share."""
    if difference.mean is None:
        return "Cannot tell: no case was scored in both runs."
    if difference.low is None or difference.high is None:
        count = f"{_plural(difference.n, 'case')}, {_plural(difference.clusters, 'source')}"
        return f"Cannot tell: n too small ({count})."
    digits = _digits(difference.high - difference.low)
    span = f"{_points(difference.low, digits)} to {_points(difference.high, digits)}"
    if difference.verdict != "cannot_tell":
        return (
            f"{difference.verdict.capitalize()} by {abs(100 * difference.mean):.{digits}f} points ({span})."
        )
    more = more_cases(difference, settle)
    if not more:
        return f"Cannot tell yet; the difference lies between {span.replace(' to ', ' and ')} points."
    goal = f"{100 * settle:g}-point"
    return f"Cannot tell yet; about {_about(more):,} more cases would settle a {goal} difference."


def _interval(
    states: Sequence[str],
    sources: Sequence[Hashable] | None,
    passed: int,
    scored: int,
    confidence: float,
) -> Interval | None:
    if sources is None:
        return wilson(passed, scored, confidence) if scored >= 2 else None
    rows = [
        (state == "passed", source)
        for state, source in zip(states, sources, strict=True)
        if state in STATES[:2]
    ]
    return clustered_rate([row[0] for row in rows], [row[1] for row in rows], confidence)


def _digits(width: float) -> int:
    """Decimals of a percentage that its interval's half width (a share) still carries."""
    half = 50 * width
    return 0 if half >= 0.5 else min(3, max(1, math.ceil(-math.log10(max(half, 1e-9)))))


def _points(value: float, digits: int) -> str:
    text = f"{100 * value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def _about(count: int) -> int:
    """Two leading digits: an estimate has no more."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return math.ceil(count / step) * step


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
