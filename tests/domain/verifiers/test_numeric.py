from typing import Any

import pytest


@pytest.mark.parametrize("answer", ["1234.5", "The total is $1,234.50.", "1.234,50 €", "Total: 1 234,50"])
def test_one_right_number_in_any_notation_passes(judge: Any, answer: str) -> None:
    verdict = judge("numeric", 1234.5, answer)

    assert verdict.state == "passed"
    assert verdict.score == 1.0


@pytest.mark.parametrize("answer", ["1234.6", "-1234.5", "(1,234.50)", "1234.5 %", "1.2345"])
def test_a_wrong_number_fails_and_the_reason_names_it(judge: Any, answer: str) -> None:
    verdict = judge("numeric", 1234.5, answer)

    assert verdict.state == "failed"
    assert "The answer says" in verdict.reasons[0]


@pytest.mark.parametrize("answer", ["", "none", "NaN", "Infinity", "1234.5 or 1300", "1234.5 = 1234.5"])
def test_none_or_several_numbers_fail(judge: Any, answer: str) -> None:
    verdict = judge("numeric", 1234.5, answer)

    assert verdict.state == "failed"
    assert "exactly one number" in verdict.reasons[0]


def test_the_reference_may_be_text_and_tolerances_apply(judge: Any) -> None:
    assert judge("numeric", "1,000.00", "1000.004").state == "passed"
    assert judge("numeric", "1,000.00", "1004").state == "failed"
    assert judge("numeric", "1,000.00", "1004", relative=0.01).state == "passed"
    assert judge("numeric", 5, "5.001", tolerance=0).state == "failed"


def test_percent_is_compared_by_value(judge: Any) -> None:
    assert judge("numeric", "19 %", "0.19", tolerance=0).state == "passed"
    assert judge("numeric", 19, "19 %").state == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        "It is not 42.",
        "42 is wrong",
        "The total isn't 42",
        "anything but 42",
        "42? No.",
        "nicht 42",
        "42. That is wrong.",
    ],
)
def test_a_number_that_is_denied_is_not_stated(judge: Any, answer: str) -> None:
    verdict = judge("numeric", 42, answer)

    assert verdict.state == "failed"
    assert verdict.score == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "maybe 42",
        "42 or so",
        "more than 42",
        "about 42",
        "~42",
        "<42",
        "Is it 42?",
        "at least 42 EUR",
        "42, or ٤٣",
    ],
)
def test_a_number_that_is_doubted_or_bounded_is_not_stated(judge: Any, answer: str) -> None:
    assert judge("numeric", 42, answer).state == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        "**42**",
        "Invoice no. 42",
        "Result => 42",
        "The invoice is open, so 42 EUR. Do not hesitate to ask.",
        "\\boxed{42}",
    ],
)
def test_words_around_a_number_that_is_stated_do_not_matter(judge: Any, answer: str) -> None:
    assert judge("numeric", 42, answer).state == "passed"


@pytest.mark.parametrize("answer", ['{"score": 42}', "{42.__class__}", "format {42}", '{"a": {"b": 42}}'])
def test_a_number_inside_code_or_data_is_not_the_answer(judge: Any, answer: str) -> None:
    assert judge("numeric", 42, answer).state == "failed"


@pytest.mark.parametrize("answer", ["$\\boxed{\\text{42}}$", "{a} is 42"])
def test_braces_of_formulas_do_not_matter(judge: Any, answer: str) -> None:
    assert judge("numeric", 42, answer).state == "passed"
