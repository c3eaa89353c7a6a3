import pytest

from domain.verifiers.prose import copied_run, find_phrase, sections, sentences, words


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Ship it on 5 May 2026.", "5 may 2026"),
        ("the **deadline** is Friday", "deadline is friday"),
        ("we don\u2019t  know", "don't know"),
        ("It costs 5.", "5"),
        ("EUR 1,200.00 are due", "1,200.00"),
    ],
)
def test_phrases_are_found_by_their_words(text: str, phrase: str) -> None:
    assert len(find_phrase(text, phrase)) == 1


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("15 days", "5 days"),
        ("5.5 %", "5"),
        ("1,200", "200"),
        ("refunds", "refund"),
        ("5,000", "5"),
        ("-40", "40"),
    ],
)
def test_a_part_of_a_word_or_number_is_not_found(text: str, phrase: str) -> None:
    assert find_phrase(text, phrase) == []


def test_sentences_end_where_readers_end_them() -> None:
    assert sentences("Pay 5.50 EUR by 3. May. It is due, e.g. today.\nThanks!") == [
        "Pay 5.50 EUR by 3. May.",
        "It is due, e.g. today.",
        "Thanks!",
    ]


def test_sections_have_headings_in_three_forms_and_items() -> None:
    found = sections("# Decisions\n- a\n- b\n\n**Actions:**\n1. c\nOpen points:\nnone so far")

    assert [(part.name, part.items) for part in found] == [
        ("Decisions", ("a", "b")),
        ("Actions", ("c",)),
        ("Open points", ()),
    ]


def test_words_keep_numbers_and_contractions_whole() -> None:
    assert words("It's 1,234.50 EUR — don't wait.") == ["it's", "1,234.50", "eur", "don't", "wait"]


def test_a_copied_run_is_named() -> None:
    source = "the board decided to move the office to Basel in spring"

    assert copied_run("the board decided to move the team", source, 5) == "the board decided to move the"
    assert copied_run("the board moved the office", source, 5) == ""
