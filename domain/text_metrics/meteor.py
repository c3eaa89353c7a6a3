"""METEOR: words aligned by form and by stem, their harmonic mean, and a penalty for scattered matches.

Source: S. Banerjee and A. Lavie, ACL 2005 workshop, with the parameters of A. Lavie and A. Agarwal, 2007
(α = 0.9, β = 3, γ = 0.5). Deviations: no synonyms, as no WordNet is shipped; the alignment is greedy from
the end, as NLTK's is. A right answer of one word scores 0.5: its one match counts as one whole chunk.
"""

from collections.abc import Sequence
from itertools import pairwise

from domain.text_metrics.porter import stem
from domain.text_metrics.tokens import words_and_signs

_ALPHA, _BETA, _GAMMA = 0.9, 3.0, 0.5
Indexed = list[tuple[int, str]]


def meteor(answer: str, reference: str) -> float:
    return of_tokens(words_and_signs(answer), words_and_signs(reference))


def of_tokens(said: Sequence[str], asked: Sequence[str]) -> float:
    """The score of two lists of lower-case tokens."""
    left, right = list(enumerate(said)), list(enumerate(asked))
    pairs, left, right = _matched(left, right)
    by_stem, _, _ = _matched(
        [(index, stem(word)) for index, word in left], [(index, stem(word)) for index, word in right]
    )
    pairs = sorted(pairs + by_stem)
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(said), len(pairs) / len(asked)
    mean = precision * recall / (_ALPHA * precision + (1.0 - _ALPHA) * recall)
    scattered: float = (_chunks(pairs) / len(pairs)) ** _BETA
    return mean * (1.0 - _GAMMA * scattered)


def _matched(left: Indexed, right: Indexed) -> tuple[list[tuple[int, int]], Indexed, Indexed]:
    """Pairs of equal words, from the end, each used once; and what is left on both sides."""
    open_places: dict[str, list[int]] = {}
    for place, word in right:
        open_places.setdefault(word, []).append(place)
    pairs = [(place, open_places[word].pop()) for place, word in reversed(left) if open_places.get(word)]
    done_left, done_right = {a for a, _ in pairs}, {b for _, b in pairs}
    return (
        pairs,
        [entry for entry in left if entry[0] not in done_left],
        [entry for entry in right if entry[0] not in done_right],
    )


def _chunks(pairs: Sequence[tuple[int, int]]) -> int:
    """Runs of matches that are neighbours in both texts."""
    breaks = pairwise(pairs)
    return 1 + sum((b[0] - a[0], b[1] - a[1]) != (1, 1) for a, b in breaks)
