"""Likeness to the reference, by a metric and a threshold."""

import time
from typing import Any

import pytest

REFERENCE = "We refund the full amount within five working days."


def test_the_threshold_itself_passes_and_the_score_is_the_likeness(judge: Any) -> None:
    score = judge("similarity", "abcd", "abcx", metric="levenshtein", threshold=0.75)

    assert (score.state, score.score) == ("passed", 0.75)
    assert judge("similarity", "abcd", "abcx", metric="levenshtein", threshold=0.76).state == "failed"


def test_the_closest_of_several_references_counts(judge: Any) -> None:
    references = ["something else entirely", REFERENCE]

    assert judge("similarity", references, REFERENCE, metric="bleu", threshold=0.99).state == "passed"
    verdict = judge("similarity", references, "We refund it.", metric="bleu", threshold=0.9)
    assert "the closest of 2 references" in verdict.reasons[0]


def test_white_space_around_the_texts_does_not_count(judge: Any) -> None:
    assert judge("similarity", " abc\n", "\n abc ", metric="levenshtein", threshold=1).state == "passed"


@pytest.mark.parametrize("answer", ["", "   \n"])
@pytest.mark.parametrize("metric", ["levenshtein", "bleu", "cosine_tokens"])
def test_an_empty_answer_fails(judge: Any, metric: str, answer: str) -> None:
    assert judge("similarity", REFERENCE, answer, metric=metric, threshold=0.01).state == "failed"


def test_an_answer_of_three_megabytes_fails_at_once(judge: Any) -> None:
    began = time.thread_time()

    verdict = judge("similarity", REFERENCE, "ab " * 1_000_000, metric="levenshtein", threshold=0.1)

    assert verdict.state == "failed"
    assert "at most 20000" in verdict.reasons[0]
    assert time.thread_time() - began < 10.0


def test_an_embedding_s_cosine_is_refused_with_what_there_is_instead(judge: Any) -> None:
    verdict = judge("similarity", REFERENCE, REFERENCE, metric="cosine", threshold=0.5)

    assert verdict.state == "unscored"
    assert "embeddings" in verdict.reasons[0]
    assert verdict.reasons[0].endswith("another metric.")


def test_other_scripts_are_measured_by_their_own_words(judge: Any) -> None:
    for text in ("返金は五日以内です", "Возврат в течение пяти дней", "คืนเงินภายในห้าวัน"):
        assert judge("similarity", text, text, metric="rouge_l", threshold=1).state == "passed"
        assert judge("similarity", text, "other", metric="rouge_l", threshold=0.1).state == "failed"
