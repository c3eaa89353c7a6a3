"""OpenAI's string check: eq, ne, like and ilike, letter by letter."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("operation", "answer", "state"),
    [
        ("eq", "Paris", "passed"),
        ("eq", "paris", "failed"),
        ("eq", "Paris\n", "failed"),
        ("ne", "London", "passed"),
        ("ne", "Paris", "failed"),
        ("like", "It is Paris.", "passed"),
        ("like", "It is PARIS.", "failed"),
        ("ilike", "It is PARIS.", "passed"),
        ("ilike", "It is London.", "failed"),
        ("like", "", "failed"),
    ],
)
def test_each_operation_decides(judge: Any, operation: str, answer: str, state: str) -> None:
    assert judge("string_check", "Paris", answer, operation=operation).state == state


def test_percent_signs_are_no_wildcards(judge: Any) -> None:
    assert judge("string_check", "P%s", "It is Paris.", operation="like").state == "failed"


def test_a_failure_says_what_the_answer_was(judge: Any) -> None:
    verdict = judge("string_check", "Paris", "London", operation="eq")

    assert verdict.reasons == ("The answer is not the reference, but 'London'.",)


def test_braces_in_an_answer_are_only_text(judge: Any) -> None:
    verdict = judge("string_check", "Paris", "{0.__class__} {}", operation="eq")

    assert "{0.__class__} {}" in verdict.reasons[0]
