"""Border inputs (Chauvin et al., arXiv 2602.11083): prompts whose first token is nearly a coin flip.

Where an endpoint shows no log-probabilities, its first tokens are all there is. At a low temperature T a
difference g between the two best logits becomes a chance of 1/(1 + exp(−g/T)): near a tie, a change of
the logits by a few T turns the answer over. Prompts near a tie are found by asking candidates a few
times and keeping those that answered in more than one way.

A round's counts are compared with the reference's by a permutation test that shuffles answers between the
two within each prompt; the statistic is the log-likelihood ratio G summed over prompts. Shuffling knows
the noise of drawing answers, but not that of serving, by which the same request computed beside others
has slightly other logits. Two things are done about that. The reference is taken in passes of a round's
size, some asked one by one, the others together; prompts on which these two disagree most are left out
(``steadiest``). And G is divided by how much larger it is in unchanged rounds than in their shuffles, if
it is (quasi-likelihood): at first in the reference's passes, each against the others, then in the rounds
since. Deviation from the paper: it compares mean total variation with a trailing baseline alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from domain.drift.signal import ALPHA, MIN_MEASURED, WINDOW, Signal, unmeasured

NAME = "border"
# Shuffles: a few first, the others only where those leave a flag possible (Besag and Clifford 1991).
FEW_SHUFFLES, SHUFFLES = 999, 9_999
TRAIL_FROM = 8  # unchanged passes or rounds before their spread is believed
Counts = Mapping[str, int]  # first token as text → how often
Pass = Sequence[Counts]  # by prompt


def balance(counts: Counts) -> float:
    """1 − Σp²: ½ for a coin flip, 0 for one answer always."""
    total = sum(counts.values())
    return 1.0 - sum((count / total) ** 2 for count in counts.values()) if total else 0.0


def mixed_prompts(counts: Mapping[str, Counts], most: int) -> list[str]:
    """Prompts that answered in more than one way, most balanced first, at most ``most`` of them."""
    mixed = [prompt for prompt, found in counts.items() if len(found) > 1]
    return sorted(mixed, key=lambda prompt: -balance(counts[prompt]))[:most]


def steadiest(alone: Sequence[Pass], together: Sequence[Pass], most: int) -> list[int]:
    """Indexes of the at most ``most`` prompts that answer alike alone and beside others, in order."""
    apart = [_g_of(before, now) for before, now in zip(_pooled(alone), _pooled(together), strict=True)]
    return sorted(sorted(range(len(apart)), key=lambda index: apart[index])[:most])


def border_reference(prompts: Sequence[str], passes: Sequence[Pass]) -> dict[str, Any]:
    """From at least two passes. ``null`` holds G of every pass against the others."""
    null = []
    for index, now in enumerate(passes):
        others = _pooled([one for other, one in enumerate(passes) if other != index])
        null.append(sum(_g_of(before, found) for before, found in zip(others, now, strict=True)))
    return {"prompts": list(prompts), "counts": _pooled(passes), "null": null}


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
    g, p = permutation_test(pairs, rng, calm=[*reference.get("null", ()), *trail])
    flagged = p <= ALPHA
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


def permutation_test(
    pairs: Sequence[tuple[Counts, Counts]], rng: np.random.Generator, *, calm: Sequence[float] = ()
) -> tuple[float, float]:
    """(G, p): p is the share of shuffles, the observed one among them, with at least this G, after G was
    divided by the excess of ``calm``, the G of unchanged rounds, over the shuffles."""
    tables = [_tables(before, now) for before, now in pairs]
    observed = sum(float(_g(pool, seen[None])[0]) for pool, seen in tables)
    shuffled = _shuffled(tables, FEW_SHUFFLES, rng)
    p = _share(observed, shuffled, calm)
    if p <= 10 * ALPHA:
        shuffled = np.concatenate([shuffled, _shuffled(tables, SHUFFLES - FEW_SHUFFLES, rng)])
        p = _share(observed, shuffled, calm)
    return observed, p


def excess(calm: Sequence[float], shuffled: np.ndarray) -> float:
    """How many times larger G is in unchanged rounds than in shuffles, at least 1; 1 for too few rounds."""
    window = calm[-WINDOW:]
    expected = float(shuffled.mean())
    if len(window) < TRAIL_FROM or expected == 0.0:
        return 1.0
    return max(1.0, float(np.mean(window)) / expected)


def _share(observed: float, shuffled: np.ndarray, calm: Sequence[float]) -> float:
    at_least = int(np.sum(shuffled >= observed / excess(calm, shuffled) - 1e-9))
    return (1 + at_least) / (1 + len(shuffled))


def _shuffled(
    tables: Sequence[tuple[np.ndarray, np.ndarray]], count: int, rng: np.random.Generator
) -> np.ndarray:
    """G of ``count`` shuffles: [count]."""
    total = np.zeros(count)
    for pool, seen in tables:
        drawn = rng.multivariate_hypergeometric(pool, int(seen.sum()), size=count, method="marginals")
        total += _g(pool, drawn)
    return total


def _pooled(passes: Sequence[Pass]) -> list[dict[str, int]]:
    return [dict(sum((Counter(one[index]) for one in passes), Counter())) for index in range(len(passes[0]))]


def _tables(before: Counts, now: Counts) -> tuple[np.ndarray, np.ndarray]:
    """(both together, ``now``) over the tokens of either: [K] each."""
    tokens = sorted({*before, *now})
    seen = np.array([now.get(token, 0) for token in tokens])
    return np.array([before.get(token, 0) for token in tokens]) + seen, seen


def _g_of(before: Counts, now: Counts) -> float:
    pool, seen = _tables(before, now)
    return float(_g(pool, seen[None])[0])


def _g(pool: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Log-likelihood ratio of splitting ``pool`` [K] into ``now`` [B, K] and the rest: [B]."""
    before = pool[None] - now
    total = 0.0
    for part in (now, before):
        expected = part.sum(axis=1, keepdims=True) * pool[None] / pool.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            total = total + np.where(part > 0, part * np.log(part / expected), 0.0).sum(axis=1)
    return np.asarray(2.0 * total)
