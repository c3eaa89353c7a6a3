"""How alike two texts are, by metrics of the field: each a pure function of two texts, in [0, 1].

``METRICS`` names them: ``metric(answer, reference)``. The time is bounded by the length of the texts
(nearly linear for n-grams, length² / 64 for edits); whoever calls bounds the length.
"""

from collections.abc import Callable, Mapping
from functools import partial

from domain.text_metrics.edits import fuzzy_match, levenshtein
from domain.text_metrics.meteor import meteor
from domain.text_metrics.ngrams import bleu, cosine_tokens, gleu, rouge_l, rouge_n

Metric = Callable[[str, str], float]

METRICS: Mapping[str, Metric] = {
    "fuzzy_match": fuzzy_match,
    "bleu": bleu,
    "gleu": gleu,
    "meteor": meteor,
    **{f"rouge_{n}": partial(rouge_n, n) for n in range(1, 6)},
    "rouge_l": rouge_l,
    "levenshtein": levenshtein,
    "cosine_tokens": cosine_tokens,
}

__all__ = ["METRICS", "Metric"]
