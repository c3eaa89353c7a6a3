"""The figures of a run or of a part of it, from its tally: cost, tokens, latencies, samples per case."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from domain.cost import cost_usd
from domain.distributions import normal_quantile, student_quantile
from domain.intervals import Interval, RateMoments, rate_interval, rate_se
from domain.sketch import quantiles
from domain.stats import mean_of_groups_se, pass_at_k, pass_hat_k
from domain.tally import MICRO, Tally

SHARES = (0.5, 0.9, 0.95, 0.99)


class Percentiles(NamedTuple):
    """Milliseconds, each within 1 % of itself, over ``n`` answers that did not come from the cache."""

    p50: float
    p90: float
    p95: float
    p99: float
    n: int


class PassAt(NamedTuple):
    """Over the ``cases`` with at least ``k`` scored samples: the chance that one of k passes, and that
    all do. Intervals are None where cases share sources, or are fewer than two."""

    k: int
    cases: int
    any_rate: float
    all_rate: float
    any_interval: Interval | None
    all_interval: Interval | None


class Figures(NamedTuple):
    """``cost_usd`` is None where a price is unknown, latencies where nothing was measured. ``judged`` of
    ``answered`` answers got a verdict. ``score_mean`` is None where nothing was scored."""

    results: int
    cost_usd: Decimal | None
    prompt_tokens: int
    completion_tokens: int
    ttft: Percentiles | None
    per_token: Percentiles | None
    latency: Percentiles | None
    attempts: int
    cached: int
    answered: int
    judged: int
    flagged: int
    score_mean: float | None

    @property
    def cached_share(self) -> float | None:
        return self.cached / self.results if self.results else None

    @property
    def judged_share(self) -> float | None:
        return self.judged / self.answered if self.answered else None


class MeanOfGroups(NamedTuple):
    """The unweighted mean of the pass rates of ``groups``; ``left_out`` had no interval."""

    mean: float
    se: float
    interval: Interval
    groups: int
    left_out: int


def figures_of(
    tally: Tally,
    *,
    input_usd_per_mtok: Decimal | None = None,
    output_usd_per_mtok: Decimal | None = None,
) -> Figures:
    counts = tally.counts
    scored = tally.scored
    return Figures(
        results=tally.results,
        cost_usd=cost_usd(
            counts["paid_prompt_tokens"],
            counts["paid_completion_tokens"],
            input_usd_per_mtok=input_usd_per_mtok,
            output_usd_per_mtok=output_usd_per_mtok,
        ),
        prompt_tokens=counts["prompt_tokens"],
        completion_tokens=counts["completion_tokens"],
        ttft=_percentiles(tally.sketches["ttft_ms"]),
        per_token=_percentiles(tally.sketches["per_token_ms"]),
        latency=_percentiles(tally.sketches["latency_ms"]),
        attempts=counts["attempts"],
        cached=counts["cached"],
        answered=counts["answered"],
        judged=scored,
        flagged=counts["flagged"],
        score_mean=counts["score_e6"] / MICRO / scored if scored else None,
    )


def pass_at_rows(tally: Tally, samples: int, confidence: float = 0.95) -> list[PassAt]:
    """pass@k and pass^k for k = 1, 2, 4 … and ``samples``, unbiased; none for one sample per case."""
    if samples < 2:
        return []
    alone = tally.counts["clusters"] == sum(held for (n, _), held in tally.cases.items() if n)
    ks = sorted({*(2**power for power in range(samples.bit_length()) if 2**power <= samples), samples})
    rows = []
    for k in ks:
        usable = {case: held for case, held in tally.cases.items() if case[0] >= k and held > 0}
        count = sum(usable.values())
        if not count:
            continue
        any_rate, any_interval = _mean_over_cases(
            [(pass_at_k(n, passed, k) or 0.0, held) for (n, passed), held in usable.items()], confidence
        )
        all_rate, all_interval = _mean_over_cases(
            [(pass_hat_k(n, passed, k) or 0.0, held) for (n, passed), held in usable.items()], confidence
        )
        rows.append(
            PassAt(
                k,
                count,
                any_rate,
                all_rate,
                any_interval if alone else None,
                all_interval if alone else None,
            )
        )
    return rows


def mean_of_groups(groups: Sequence[RateMoments], confidence: float = 0.95) -> MeanOfGroups | None:
    """Unweighted mean of the pass rates of groups with its standard error √(Σ se²) / k.

    None with fewer than two groups that have an interval. At 0 and 100 % the clustered standard error
    would be 0, which is a lie: there half of Wilson's interval, over its z, stands in.
    """
    known = [(moments, interval) for moments in groups if (interval := rate_interval(moments, confidence))]
    if len(known) < 2:
        return None
    z = normal_quantile(0.5 + confidence / 2)
    se = mean_of_groups_se(
        [rate_se(moments) or (interval.high - interval.low) / (2 * z) for moments, interval in known]
    )
    assert se is not None
    mean = sum(moments.passed / moments.n for moments, _ in known) / len(known)
    rows = sum(moments.n for moments, _ in known)
    interval = Interval(max(0.0, mean - z * se), min(1.0, mean + z * se), rows, "mean of groups")
    return MeanOfGroups(mean, se, interval, len(known), len(groups) - len(known))


def _percentiles(bins: Mapping[int, int]) -> Percentiles | None:
    found = quantiles(bins, SHARES)
    if found is None:
        return None
    p50, p90, p95, p99 = found
    return Percentiles(p50, p90, p95, p99, sum(bins.values()))


def _mean_over_cases(values: Sequence[tuple[float, int]], confidence: float) -> tuple[float, Interval | None]:
    """Mean of values that ``held`` cases have each, with a t interval over cases; none without spread."""
    n = sum(held for _, held in values)
    mean = math.fsum(value * held for value, held in values) / n
    if n < 2:
        return mean, None
    variance = math.fsum(held * (value - mean) ** 2 for value, held in values) / (n - 1)
    if variance == 0.0:
        return mean, None
    half = student_quantile(0.5 + confidence / 2, n - 1) * math.sqrt(variance / n)
    return mean, Interval(max(0.0, mean - half), min(1.0, mean + half), n, "t over cases", n)
