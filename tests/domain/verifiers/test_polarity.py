import pytest

from domain.verifiers.polarity import denied, doubted, retracted, sentence_parts


def place(text: str, phrase: str = "42") -> tuple[str, int, int]:
    start = text.index(phrase)
    return text, start, start + len(phrase)


@pytest.mark.parametrize(
    "text", ["not 42", "It isn't 42.", "42 is wrong", "anything but 42", "kein Wert von 42"]
)
def test_a_denial_before_or_after_is_seen(text: str) -> None:
    assert denied(*place(text))


@pytest.mark.parametrize(
    "text", ["It is 42. Do not pay.", "Not yet paid.\nTotal 42", "Invoice no 42", "exactly 42"]
)
def test_a_denial_of_another_sentence_is_none_of_this_one(text: str) -> None:
    assert not denied(*place(text))


@pytest.mark.parametrize(
    "text",
    ["perhaps 42", "42?", "up to 42", "≈42", "over 42", "42, maybe", "either 42",
     "minus 42", "half of 42", "the opposite of 42", "42 squared", "42 plus 1", "twice 42"],
)  # fmt: skip
def test_doubts_bounds_and_questions_are_seen(text: str) -> None:
    assert doubted(*place(text))


@pytest.mark.parametrize("text", ["The total over all rows is 42", "=> 42", "42. Any questions?"])
def test_words_elsewhere_are_no_doubt(text: str) -> None:
    assert not doubted(*place(text))


def test_a_decimal_point_ends_no_sentence() -> None:
    assert sentence_parts(*place("Not paid. It is 42.5 EUR. Bye.")) == (" It is ", ".5 EUR.")


def test_taking_back_is_seen() -> None:
    assert retracted("It is 42. Just kidding.")
    assert not retracted("It is 42. This is right.")
