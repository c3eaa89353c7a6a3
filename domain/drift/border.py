"""Border inputs (Chauvin et al., arXiv 2602.11083): prompts whose first token is nearly a coin flip.

Where an endpoint shows no log-probabilities, its first tokens are all there is. At a low temperature T a
difference g between the two best logits becomes a chance of 1/(1 + exp(−g/T)): near a tie, a change of
the logits by a few T turns the answer over. Prompts near a tie are found by asking candidates a few
times and keeping those that answered in more than one way.

A round's counts are compared with the reference's by a permutation test that shuffles answers between the
two within each prompt; the statistic is the log-likelihood ratio G summed over prompts. Deviations from
the paper: it compares mean total variation with a trailing baseline alone; here a round must differ by
the test and, once there are enough unchanged rounds, from their trailing spread as well, since jitter
between rounds is not what shuffling within one pool of answers knows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from domain.drift.signal import ALPHA, MIN_MEASURED, WINDOW, Signal, unmeasured

NAME = "border"
PERMUTATIONS = 9_999
TRAIL_FROM, TRAIL_SIGMAS = 8, 5.0
Counts = Mapping[str, int]  # first token as text → how often


def balance(counts: Counts) -> float:
    """1 − Σp²: ½ for a coin flip, 0 for one answer always."""
    total = sum(counts.values())
    return 1.0 - sum((count / total) ** 2 for count in counts.values()) if total else 0.0


def mixed_prompts(counts: Mapping[str, Counts], most: int) -> list[str]:
    """Prompts that answered in more than one way, most balanced first, at most ``most`` of them."""
    mixed = [prompt for prompt, found in counts.items() if len(found) > 1]
    return sorted(mixed, key=lambda prompt: -balance(counts[prompt]))[:most]


def border_signal(
    reference: Mapping[str, Any], counts: Sequence[Counts], trail: Sequence[float], rng: np.random.Generator
) -> Signal:
    """``counts`` by prompt as in the reference. ``value`` is −log10 p, ``detail.g`` the statistic;
    ``trail`` are the statistics of unchanged rounds since the reference, oldest first."""
    known = reference["counts"]
    asked = reference["each"] * len(known)
    n = sum(sum(found.values()) for found in counts)
    if n < MIN_MEASURED * asked or sum(bool(found) for found in counts) < MIN_MEASURED * len(known):
        return unmeasured(NAME, f"Only {n} of {asked} border requests were answered.", n)
    pairs = [(before, now) for before, now in zip(known, counts, strict=True) if now]
    g, p = permutation_test(pairs, rng)
    flagged = p <= ALPHA and g > trailing(trail)
    reasons = []
    if flagged:
        reasons.append(
            f"First tokens of {len(pairs)} border prompts are split otherwise than in the reference "
            f"(p = {p:.2g})."
        )
    return Signal(
        NAME,
        "flagged" if flagged else "unchanged",
        float(-np.log10(p)),
        float(-np.log10(ALPHA)),
        n,
        reasons,
        {"p": p, "g": g},
    )


def permutation_test(pairs: Sequence[tuple[Counts, Counts]], rng: np.random.Generator) -> tuple[float, float]:
    """(G, p): p is the share of shuffles, the observed one among them, with at least this G."""
    observed, shuffled = 0.0, np.zeros(PERMUTATIONS)
    for before, now in pairs:
        tokens = sorted({*before, *now})
        pool = np.array([before.get(token, 0) + now.get(token, 0) for token in tokens])
        seen = np.array([now.get(token, 0) for token in tokens])
        observed += float(_g(pool, seen[None])[0])
        drawn = rng.multivariate_hypergeometric(pool, int(seen.sum()), size=PERMUTATIONS, method="marginals")
        shuffled += _g(pool, drawn)
    at_least = int(np.sum(shuffled >= observed - 1e-9))
    return observed, (1 + at_least) / (1 + PERMUTATIONS)


def trailing(trail: Sequence[float]) -> float:
    """What the statistic must exceed besides: mean plus deviations of unchanged rounds, if enough of them."""
    window = np.asarray(trail[-WINDOW:], dtype=float)
    if len(window) < TRAIL_FROM:
        return 0.0
    return float(window.mean() + TRAIL_SIGMAS * window.std(ddof=1))


def _g(pool: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Log-likelihood ratio of splitting ``pool`` [K] into ``now`` [B, K] and the rest: [B]."""
    before = pool[None] - now
    total = 0.0
    for part in (now, before):
        expected = part.sum(axis=1, keepdims=True) * pool[None] / pool.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            total = total + np.where(part > 0, part * np.log(part / expected), 0.0).sum(axis=1)
    return np.asarray(2.0 * total)
