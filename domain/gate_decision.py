"""A suite's gate on one run: every rule's state, sentence and figures, and the decision.

Three answers only. "passed" needs evidence, "failed" is shown, all else is "undecided", which never
counts as a pass. Errors and missing scores say nothing about a model: they make a gate undecided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from domain.gate_rules import (
    Cost,
    Coverage,
    ErrorRate,
    Floor,
    Latency,
    NonInferior,
    NoRegression,
    Rule,
    SliceFloor,
)
from domain.intervals import Interval, moments_of, rate_interval
from domain.noninferiority import RuleState, non_inferiority
from domain.sample_size import needed_for_floor
from domain.summary import RunSummary, coverage_text, score_text

MIN_LATENCIES = 20  # below, a 95th percentile is the largest value or nearly so
MIN_SLICE = 10
_SHOWN = 5


@dataclass(frozen=True)
class GateEvidence:
    """What is known about a run, one entry per case of its suite version in every sequence.

    ``passed`` and ``scored`` count samples of ``samples`` asked. ``base`` holds (passed, scored) of the
    same case revision in the baseline, None where it has none; without a baseline ``no_baseline`` says
    why. ``axes`` holds each case's value, "" for none, for every axis that a rule asks about.
    """

    summary: RunSummary
    keys: Sequence[str]
    sources: Sequence[str]
    passed: Sequence[int]
    scored: Sequence[int]
    samples: int
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Mapping[str, Sequence[int]] = field(default_factory=dict)  # “name=value” → places
    base: Sequence[tuple[int, int] | None] | None = None
    base_name: str = ""
    no_baseline: str = "There is no baseline."
    latency_p95_ms: float | None = None
    latencies: int = 0
    mean_usd: float | None = None
    mean_tokens: float | None = None


class RuleResult(NamedTuple):
    kind: str
    words: str
    state: RuleState
    sentence: str
    figures: dict[str, Any]


class GateOutcome(NamedTuple):
    decision: RuleState
    sentence: str
    rules: tuple[RuleResult, ...]


def gate_decide(rules: Sequence[Rule], evidence: GateEvidence) -> GateOutcome:
    """Judge every rule. Failed where one failed, else undecided where one is, else passed.

    Under the asked coverage only what is certain about named cases still fails: a rate that misses
    samples, and ceilings over the samples that are left, are undecided.
    """
    coverage = next((rule for rule in rules if isinstance(rule, Coverage)), Coverage())
    enough = evidence.summary.coverage is not None and evidence.summary.coverage >= coverage.min_coverage
    results = []
    for rule in rules:
        state, sentence, figures = _judge(rule, evidence)
        if not enough and not isinstance(rule, NoRegression | Coverage) and state != "undecided":
            sentence, figures = f"{sentence} Coverage is too low to count this.", {**figures, "alone": state}
            state = "undecided"
        results.append(RuleResult(rule.kind, rule.words, state, sentence, figures))
    return GateOutcome(*_decision(results), tuple(results))


def _decision(results: Sequence[RuleResult]) -> tuple[RuleState, str]:
    failed = [result for result in results if result.state == "failed"]
    open_ = [result for result in results if result.state == "undecided"]
    if not results:
        return "undecided", "This gate has no rules."
    if failed:
        more = f" {len(open_)} more undecided." if open_ else ""
        return "failed", f"{_count(len(failed), len(results))} failed. {failed[0].sentence}{more}"
    if open_:
        return "undecided", f"{_count(len(open_), len(results))} undecided. {open_[0].sentence}"
    return "passed", f"All {len(results)} rules hold." if len(results) > 1 else "The rule holds."


def _count(some: int, every: int) -> str:
    return f"{some} of {every} rules" if every > 1 else "The rule"


_Judged = tuple[RuleState, str, dict[str, Any]]


def _judge(rule: Rule, evidence: GateEvidence) -> _Judged:
    match rule:
        case Coverage():
            return _coverage(rule, evidence)
        case ErrorRate():
            return _errors(rule, evidence)
        case Floor():
            return _floor(rule, evidence)
        case NonInferior():
            return _non_inferior(rule, evidence)
        case NoRegression():
            return _no_regression(rule, evidence)
        case Latency():
            return _latency(rule, evidence)
        case Cost():
            return _cost(rule, evidence)
        case SliceFloor():
            return _slice_floor(rule, evidence)


def _coverage(rule: Coverage, evidence: GateEvidence) -> _Judged:
    found = evidence.summary.coverage
    figures = {"coverage": found, "min_coverage": rule.min_coverage}
    words = f"{_first(coverage_text(evidence.summary))}."
    if found is not None and found >= rule.min_coverage:
        return "passed", words, figures
    return "undecided", f"{words} At least {100 * rule.min_coverage:g} % must be scored.", figures


def _errors(rule: ErrorRate, evidence: GateEvidence) -> _Judged:
    summary = evidence.summary
    if not summary.total:
        return "undecided", "There are no results.", {"errors": 0, "total": 0, "max_rate": rule.max_rate}
    rate = summary.error / summary.total
    figures = {"errors": summary.error, "total": summary.total, "rate": rate, "max_rate": rule.max_rate}
    words = f"{summary.error:,} of {summary.total:,} samples ended in an error ({_share(rate)})"
    if rate <= rule.max_rate:
        return "passed", f"{words}.", figures
    hint = "Errors say nothing about the model: retry them."
    return "undecided", f"{words}, more than {100 * rule.max_rate:g} %. {hint}", figures


def _floor(rule: Floor, evidence: GateEvidence) -> _Judged:
    summary = evidence.summary
    return _against_floor(summary.pass_rate, summary.interval, summary.scored, rule.min_rate)


def _against_floor(rate: float | None, interval: Interval | None, n: int, floor: float) -> _Judged:
    figures = {
        "rate": rate,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n": n,
        "clusters": interval.clusters if interval else None,
        "min_rate": floor,
    }
    words, wanted = _first(score_text(rate, interval, n)), f"{100 * floor:g} %"
    if rate is None or interval is None:
        return "undecided", f"{words}.", figures
    if interval.low >= floor:
        return "passed", f"{words}: the lower limit reaches {wanted}.", figures
    if interval.high < floor:
        return "failed", f"{words}: all of it lies under {wanted}.", figures
    needed = needed_for_floor(rate, floor)
    planned = round(needed * _design(rate, interval, n)) if needed else None
    figures["planned"] = planned
    hint = f"; about {_about(planned - n):,} more cases would settle it" if planned and planned > n else ""
    return "undecided", f"{words}: {wanted} lies inside the interval{hint}.", figures


def _design(rate: float, interval: Interval, n: int) -> float:
    """How many rows count as one, read off the interval's width; 1 where every row stands for itself."""
    if interval.clusters is None or interval.clusters == n or rate in (0.0, 1.0):
        return 1.0
    half = (interval.high - interval.low) / 2
    return max(1.0, n * (half / 1.96) ** 2 / (rate * (1 - rate)))


def _non_inferior(rule: NonInferior, evidence: GateEvidence) -> _Judged:
    if evidence.base is None:
        return "undecided", evidence.no_baseline, {"margin": rule.margin}
    before = [None if row is None or not row[1] else row[0] / row[1] for row in evidence.base]
    after = [p / s if s else None for p, s in zip(evidence.passed, evidence.scored, strict=True)]
    found = non_inferiority(before, after, evidence.sources, rule.margin, rule.alpha)
    figures = {**found._asdict(), "baseline": evidence.base_name}
    del figures["state"]
    margin = f"{100 * rule.margin:g}"
    if found.low is None or found.high is None or found.mean is None:
        return "undecided", f"n too small: {found.n:,} cases were scored on both sides.", figures
    # One decimal: a margin is a matter of points.
    words = (
        f"{_signed(found.mean)} points against {evidence.base_name} "
        f"({_signed(found.low)} to {_signed(found.high)}, n = {found.n:,} pairs, {found.planned:,} planned)"
    )
    if found.state == "passed":
        return "passed", f"{words}: at most {100 * -min(0.0, found.low):.1f} worse, within {margin}.", figures
    if found.state == "failed":
        return "failed", f"{words}: worse by more than {margin}.", figures
    return "undecided", f"{words}: it could still be more than {margin} worse.", figures


def _no_regression(rule: NoRegression, evidence: GateEvidence) -> _Judged:
    place = {key: at for at, key in enumerate(evidence.keys)}
    absent = [f"case {key} is not in this suite version" for key in rule.cases if key not in place]
    absent += [f"no case has {tag}" for tag in rule.tags if not evidence.tags.get(tag)]
    named = [place[key] for key in rule.cases if key in place]
    named += [at for tag in rule.tags for at in evidence.tags.get(tag, ())]
    told = {at: _kept(at, rule, evidence) for at in dict.fromkeys(named)}
    lost = [evidence.keys[at] for at, kept in told.items() if kept is False]
    unsure = [evidence.keys[at] for at, kept in told.items() if kept is None]
    figures = {"cases": len(told), "lost": lost[:100], "unsure": unsure[:100], "absent": absent[:100]}
    if lost:
        verb = "failed" if rule.must == "pass" else "passed before and failed now"
        return "failed", f"{_listed(lost)} {verb}.", figures
    if absent:
        return "undecided", f"{_first('; '.join(absent[:_SHOWN]))}.", figures
    if unsure:
        why = evidence.no_baseline if evidence.base is None and rule.must != "pass" else ""
        return "undecided", f"{_listed(unsure)} cannot be told. {why}".strip(), figures
    return "passed", "It was not lost." if len(told) == 1 else f"None of {len(told):,} was lost.", figures


def _kept(at: int, rule: NoRegression, evidence: GateEvidence) -> bool | None:
    """Whether a named case was kept; None where that cannot be told. All samples passed is always kept."""
    if evidence.passed[at] == evidence.samples:
        return True
    before = evidence.base[at] if evidence.base is not None else None
    if rule.must != "pass":
        if before is None or before[1] == 0:
            return None
        if before[0] < before[1]:
            return True  # it did not hold before either
    return False if evidence.passed[at] < evidence.scored[at] else None


def _latency(rule: Latency, evidence: GateEvidence) -> _Judged:
    value, n = evidence.latency_p95_ms, evidence.latencies
    figures = {"p95_ms": value, "n": n, "max_ms": rule.p95_ms}
    if value is None:
        return "undecided", "No answer carries a latency.", figures
    words = f"p95 is {value:,.0f} ms over {n:,} answers"
    if n < MIN_LATENCIES:
        return "undecided", f"{words}: n too small, {MIN_LATENCIES} are needed.", figures
    if value <= rule.p95_ms:
        return "passed", f"{words}.", figures
    return "failed", f"{words}, above {rule.p95_ms:,.0f} ms.", figures


def _cost(rule: Cost, evidence: GateEvidence) -> _Judged:
    figures = {"usd": evidence.mean_usd, "tokens": evidence.mean_tokens}
    parts, over, unknown = [], False, []
    if rule.max_usd is not None:
        if evidence.mean_usd is None:
            unknown.append("The target has no prices.")
        else:
            parts.append(f"${evidence.mean_usd:.4g} (at most ${rule.max_usd:g})")
            over |= evidence.mean_usd > rule.max_usd
    if rule.max_tokens is not None:
        if evidence.mean_tokens is None:
            unknown.append("No answer carries a count of tokens.")
        else:
            parts.append(f"{evidence.mean_tokens:,.1f} tokens (at most {rule.max_tokens:,.0f})")
            over |= evidence.mean_tokens > rule.max_tokens
    words = f"An answer takes {' and '.join(parts)} on average." if parts else ""
    state: RuleState = "failed" if over else "undecided" if unknown else "passed"
    return state, " ".join([words, *unknown]).strip(), figures


def _slice_floor(rule: SliceFloor, evidence: GateEvidence) -> _Judged:
    values = evidence.axes.get(rule.axis, ())
    wanted = [rule.value] if rule.value else sorted(set(values) - {""})
    judged = [(value, *_slice(value, values, evidence, rule.min_rate)) for value in wanted]
    figures: dict[str, Any] = {
        "min_rate": rule.min_rate,
        "slices": [{"value": value, "state": state, **found} for value, state, _, found in judged[:200]],
    }
    if not judged:
        return "undecided", f"No case has a value for {rule.axis}.", figures
    bad: tuple[RuleState, ...] = ("failed", "undecided")
    for state in bad:
        some = [(value, sentence) for value, found, sentence, _ in judged if found == state]
        if some:
            rest = len(some) - 1
            more = f" {rest} more slice{'s are' if rest > 1 else ' is'} {state}." if rest else ""
            return state, f"{rule.axis} = {some[0][0]}: {some[0][1]}{more}", figures
    if len(judged) == 1:
        return "passed", f"{rule.axis} = {judged[0][0]}: {judged[0][2]}", figures
    return "passed", f"All {len(judged):,} values of {rule.axis} hold.", figures


def _slice(value: str, values: Sequence[str], evidence: GateEvidence, floor: float) -> _Judged:
    inside = [at for at, own in enumerate(values) if own == value]
    clusters: dict[str, list[int]] = {}
    for at in inside:
        held = clusters.setdefault(evidence.sources[at], [0, 0])
        held[0] += evidence.scored[at]
        held[1] += evidence.passed[at]
    moments = moments_of((scored, passed) for scored, passed in clusters.values())
    rate = moments.passed / moments.n if moments.n else None
    if len(inside) < MIN_SLICE:
        figures = {"rate": rate, "n": moments.n, "min_rate": floor}
        return "undecided", f"n too small ({len(inside)} cases, {MIN_SLICE} are needed).", figures
    return _against_floor(rate, rate_interval(moments), moments.n, floor)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _share(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _signed(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return text.replace("-", "−") if float(text) else "0.0"


def _about(count: int) -> int:
    """Two leading digits: an estimate has no more."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step
