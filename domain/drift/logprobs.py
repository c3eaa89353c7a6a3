"""Log-probability tracking (Chauvin et al., arXiv 2512.03816): the first token's k best, many times over.

The statistic of two sets of samples of one prompt is the mean over tokens of the absolute difference of
their average log-probabilities; a token outside of a sample's k best counts as that sample's lowest
(their left censoring). Deviations:

- Several prompts instead of one, averaged, as one prompt can be blind to a change.
- The k of a comparison is the smallest of its samples, so that an endpoint that shortens its lists is
  not read as another model.
- The comparison is always with the reference, so a slow drift adds up.
- The reference has two parts, asked one at a time and asked together, and a round is compared with the
  nearest point between their averages: half-precision serving computes a lone request with other kernels
  than a batch, and how many of a round's requests meet others is up to the load, not to the model.

The noise is what unchanged rounds show: the passes of the reference against its other passes, then every
unchanged round (trailing). Until there are many of them their spread is taken as at least a quarter of
their mean, and no difference below ``FLOOR`` flags: a reference sees only the load of its own minute.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from domain.drift.signal import MIN_MEASURED, SIGMAS, WINDOW, Signal, unmeasured

NAME = "logprobs"
Sample = Mapping[str, float]  # token as text → log-probability
FLOOR = 0.02
_SEEN = 0.005  # in nats; a smaller shift reads as none with two decimals
LOWEST = -30.0  # engines write impossible tokens as −9999; a jump to that would outweigh all others


def sample_of(entries: Sequence[tuple[str, float]]) -> dict[str, float] | None:
    """One answer's alternatives. Tokens that read the same are added up; None if nothing is usable."""
    found: dict[str, float] = {}
    for token, value in entries:
        if math.isnan(value) or value > 1e-3:
            return None
        value = min(max(value, LOWEST), 0.0)
        found[token] = min(float(np.logaddexp(found[token], value)), 0.0) if token in found else value
    return found or None


def information(samples: Sequence[Sample]) -> float:
    """1 − Σp² of the mean distribution: the Fisher information about the logits in one drawn token.

    It is 0 for a certain answer and largest where several tokens are about equally likely.
    """
    tokens = sorted({token for sample in samples for token in sample})
    shares = [np.mean([math.exp(sample.get(token, -math.inf)) for sample in samples]) for token in tokens]
    return float(max(0.0, 1.0 - sum(share * share for share in shares)))


def informative_prompts(samples: Mapping[str, Sequence[Sample]], count: int) -> list[str]:
    """The ``count`` prompts with the most information, in the order given; certain ones come last."""
    order = sorted(samples, key=lambda prompt: -information(samples[prompt]))[:count]
    return [prompt for prompt in samples if prompt in set(order)]


Pass = Sequence[Sequence[Sample]]  # samples of each prompt


def logprobs_reference(
    prompts: Sequence[str], alone: Sequence[Pass], together: Sequence[Pass]
) -> dict[str, Any]:
    """From at least two passes asked one request at a time and as many asked together.

    ``null`` holds the statistic of every pass against the reference that the others make.
    """
    null = []
    for skipped in range(len(alone)):
        fewer = _pooled([one for index, one in enumerate(alone) if index != skipped])
        null.append(distance(fewer, _pooled(together), alone[skipped]))
    for skipped in range(len(together)):
        fewer = _pooled([one for index, one in enumerate(together) if index != skipped])
        null.append(distance(_pooled(alone), fewer, together[skipped]))
    return {
        "prompts": list(prompts),
        "alone": [[_rounded(sample) for sample in row] for row in _pooled(alone)],
        "together": [[_rounded(sample) for sample in row] for row in _pooled(together)],
        "null": null,
    }


def logprobs_signal(
    reference: Mapping[str, Any], samples: Sequence[Sequence[Sample]], trail: Sequence[float]
) -> Signal:
    """``samples`` by prompt as in the reference; ``trail`` are the values of unchanged rounds since then,
    oldest first."""
    alone, together = reference["alone"], reference["together"]
    asked = reference["each"] * len(alone)
    n = sum(len(rows) for rows in samples)
    measured = [j for j, rows in enumerate(samples) if rows]
    if n < MIN_MEASURED * asked or len(measured) < MIN_MEASURED * len(alone):
        return unmeasured(NAME, f"Only {n} of {asked} requests brought log-probabilities.", n)
    parts = {j: statistic(alone[j], together[j], samples[j]) for j in measured}
    value = float(np.mean(list(parts.values())))
    limit = threshold([*reference["null"], *trail])
    reasons = []
    if value > limit:
        reasons.append(
            f"Log-probabilities of first tokens moved by {value:.3g} on average; up to {limit:.3g} is noise."
        )
    most = max(parts, key=lambda j: parts[j])
    return Signal(
        NAME,
        "flagged" if reasons else "unchanged",
        value,
        limit,
        n,
        reasons,
        {"most": most, "moves": moves([*alone[most], *together[most]], samples[most])},
    )


def distance(alone: Pass, together: Pass, now: Pass) -> float:
    """The statistic averaged over prompts."""
    return float(np.mean([statistic(a, b, c) for a, b, c in zip(alone, together, now, strict=True)]))


def statistic(alone: Sequence[Sample], together: Sequence[Sample], now: Sequence[Sample]) -> float:
    """Mean over tokens of |average of the reference − average now|, in nats, for the mixture of the
    reference's two parts that is nearest."""
    depth = min(len(sample) for sample in (*alone, *together, *now))
    sets = [[_best(sample, depth) for sample in rows] for rows in (alone, together, now)]
    tokens = sorted({token for rows in sets for sample in rows for token in sample})
    first, second, seen = (_averages(rows, tokens) for rows in sets)
    shares = np.linspace(0.0, 1.0, 21)[:, None]  # [M, 1]
    mixtures = first + shares * (second - first)  # [M, tokens]
    return float(np.abs(mixtures - seen).mean(axis=1).min())


def threshold(null: Sequence[float]) -> float:
    """Mean plus ``SIGMAS`` standard deviations of what unchanged rounds showed, at least ``FLOOR``."""
    window = np.asarray(null[-WINDOW:], dtype=float)
    mean = float(window.mean())
    spread = float(window.std(ddof=1)) if len(window) > 1 else 0.0
    return max(FLOOR, mean + SIGMAS * max(spread, mean / 4))


def moves(before: Sequence[Sample], now: Sequence[Sample], count: int = 3) -> list[dict[str, Any]]:
    """The tokens that moved most: ``{"token", "before", "now"}`` in nats; none that stayed where it was."""
    tokens = sorted({token for sample in (*before, *now) for token in sample})
    old, new = _averages(before, tokens), _averages(now, tokens)
    order = np.argsort(-np.abs(old - new))[:count]
    return [
        {"token": tokens[i], "before": float(old[i]), "now": float(new[i])}
        for i in order
        if abs(old[i] - new[i]) >= _SEEN
    ]


def _pooled(passes: Sequence[Pass]) -> list[list[Sample]]:
    """Samples of each prompt over all passes."""
    return [[sample for one in passes for sample in one[j]] for j in range(len(passes[0]))]


def _best(sample: Sample, depth: int) -> Sample:
    if len(sample) == depth:
        return sample
    return dict(sorted(sample.items(), key=lambda item: (-item[1], item[0]))[:depth])


def _averages(samples: Sequence[Sample], tokens: Sequence[str]) -> np.ndarray:
    """[len(tokens)]; a token that a sample does not list counts as the sample's lowest."""
    rows = []
    for sample in samples:
        lowest = min(sample.values())
        rows.append([sample.get(token, lowest) for token in tokens])
    averages: np.ndarray = np.mean(np.asarray(rows, dtype=float), axis=0)
    return averages


def _rounded(sample: Sample) -> dict[str, float]:
    return {token: round(value, 7) for token, value in sample.items()}
