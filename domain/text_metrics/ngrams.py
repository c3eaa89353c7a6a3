"""Likeness by shared n-grams: BLEU, GLEU, ROUGE, and the cosine of word counts."""

import math
from collections import Counter
from collections.abc import Sequence

from domain.text_metrics.edits import common
from domain.text_metrics.tokens import tokens_13a, words

Grams = Counter[tuple[str, ...]]
_ORDER = 4


def bleu(answer: str, reference: str) -> float:
    """Sentence BLEU of 1, as sacreBLEU's ``sentence_bleu``: tokens 13a, exponential smoothing, and no
    order that the answer is too short for.

    Sources: K. Papineni et al., ACL 2002; M. Post, "A call for clarity in reporting BLEU scores" (2018).
    """
    said, asked = tokens_13a(answer), tokens_13a(reference)
    logs: list[float] = []
    smooth, any_right = 1.0, False
    for order in range(1, min(_ORDER, len(said)) + 1):
        total = len(said) - order + 1
        right = _shared(_grams(said, order), _grams(asked, order))
        any_right = any_right or right > 0
        if right == 0:
            smooth *= 2.0
        logs.append(math.log(right / total if right else 1.0 / (smooth * total)))
    if not any_right:
        return 0.0
    brevity = min(0.0, 1.0 - len(asked) / len(said))
    return min(1.0, math.exp(brevity + sum(logs) / len(logs)))


def gleu(answer: str, reference: str) -> float:
    """Shared n-grams of all orders to 4, over those of the text that has more: the lower of precision and
    recall. Tokens 13a. Source: Y. Wu et al., arXiv 1609.08144, section 8."""
    said, asked = _all_grams(tokens_13a(answer)), _all_grams(tokens_13a(reference))
    most = max(said.total(), asked.total())
    return _shared(said, asked) / most if most else 0.0


def rouge_n(n: int, answer: str, reference: str) -> float:
    """F1 of shared n-grams of words. Source: C.-Y. Lin, "ROUGE", ACL 2004 workshop; no stemming."""
    said, asked = _grams(words(answer), n), _grams(words(reference), n)
    return _f1(_shared(said, asked), said.total(), asked.total())


def rouge_l(answer: str, reference: str) -> float:
    """F1 of the longest common subsequence of words over the whole text. Source: as ``rouge_n``."""
    said, asked = words(answer), words(reference)
    return _f1(common(said, asked), len(said), len(asked))


def cosine_tokens(answer: str, reference: str) -> float:
    """Cosine of the angle between word counts. It compares words, not meanings: no embedding is involved."""
    said, asked = Counter(words(answer)), Counter(words(reference))
    dot = sum(count * asked[word] for word, count in said.items())
    if not dot:
        return 0.0
    lengths = (sum(count * count for count in counts.values()) for counts in (said, asked))
    return min(1.0, dot / math.sqrt(math.prod(lengths)))


def _grams(tokens: Sequence[str], n: int) -> Grams:
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def _all_grams(tokens: Sequence[str]) -> Grams:
    found: Grams = Counter()
    for order in range(1, _ORDER + 1):
        found.update(_grams(tokens, order))
    return found


def _shared(said: Grams, asked: Grams) -> int:
    return sum(min(count, asked[gram]) for gram, count in said.items() if gram in asked)


def _f1(shared: int, said: int, asked: int) -> float:
    return 2.0 * shared / (said + asked) if shared else 0.0
