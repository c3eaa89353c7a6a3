"""Metrics of likeness against the figures of the libraries that people know.

``figures.json`` was made with RapidFuzz, NLTK (METEOR without WordNet, Porter's original algorithm),
sacreBLEU and rouge-score, whose versions it names; none of them is needed here.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text_metrics import METRICS
from domain.text_metrics.edits import common, distance
from domain.text_metrics.ngrams import cosine_tokens
from domain.text_metrics.porter import stem

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
TEXT = st.text(max_size=40)
SHORT = st.text(alphabet="abc", max_size=9)


@pytest.mark.parametrize("pair", FIGURES["pairs"], ids=lambda pair: pair["answer"][:20])
def test_scores_equal_those_of_the_known_libraries(pair: Any) -> None:
    found = {name: METRICS[name](pair["answer"], pair["reference"]) for name in pair["scores"]}

    assert found == pytest.approx(pair["scores"], abs=1e-8)


def test_every_metric_but_the_cosine_has_figures_to_agree_with() -> None:
    assert {name for pair in FIGURES["pairs"] for name in pair["scores"]} == set(METRICS) - {"cosine_tokens"}


def test_stems_are_porter_s() -> None:
    assert {word: stem(word) for word in FIGURES["stems"]} == FIGURES["stems"]


def test_the_cosine_is_that_of_word_counts() -> None:
    assert cosine_tokens("a a b", "a b b") == pytest.approx(4 / 5)
    assert cosine_tokens("a b", "c d") == 0.0
    assert cosine_tokens("b, A!", "a b") == pytest.approx(1.0)


@pytest.mark.parametrize("name", sorted(METRICS))
@given(answer=TEXT, reference=TEXT)
def test_a_score_is_from_zero_to_one(name: str, answer: str, reference: str) -> None:
    assert 0.0 <= METRICS[name](answer, reference) <= 1.0


@pytest.mark.parametrize("name", ["fuzzy_match", "levenshtein", "cosine_tokens", "rouge_1", "rouge_l"])
@given(answer=TEXT, reference=TEXT)
def test_these_do_not_care_which_text_is_the_reference(name: str, answer: str, reference: str) -> None:
    one, other = METRICS[name](answer, reference), METRICS[name](reference, answer)

    assert one == pytest.approx(other)


@given(a=SHORT, b=SHORT)
def test_edits_and_common_signs_equal_the_textbook_s_tables(a: str, b: str) -> None:
    assert distance(a, b) == _table(a, b)[0]
    assert common(a, b) == _table(a, b)[1]


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("texts", [("ab " * 6_600, "ba " * 6_600), ("a" * 20_000, "y" * 20_000)])
def test_the_longest_texts_take_seconds_at_most(name: str, texts: tuple[str, str]) -> None:
    began = time.thread_time()

    METRICS[name](*texts)

    assert time.thread_time() - began < 20.0


def _table(a: str, b: str) -> tuple[int, int]:
    edits = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    same = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            edits[i][j] = min(edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (x != y))
            same[i][j] = same[i - 1][j - 1] + 1 if x == y else max(same[i - 1][j], same[i][j - 1])
    return edits[-1][-1], same[-1][-1]
