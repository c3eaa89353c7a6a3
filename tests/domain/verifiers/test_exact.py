from typing import Any


def test_white_space_around_the_answer_is_ignored(judge: Any) -> None:
    assert judge("exact", "Paris", "Paris\n").state == "passed"


def test_case_matters_unless_normalized(judge: Any) -> None:
    assert judge("exact", "Paris", "paris").state == "failed"
    assert judge("exact", "Paris", " paris ", normalize=True).state == "passed"


def test_an_answer_that_only_contains_the_reference_fails(judge: Any) -> None:
    assert judge("exact", "Paris", "Paris, London, Rome", normalize=True).state == "failed"


def test_an_empty_answer_fails_with_score_zero(judge: Any) -> None:
    assert judge("exact", "Paris", "").score == 0.0
