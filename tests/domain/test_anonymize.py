import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.anonymize import BinaryContent, PseudonymBook, Rules, anonymize, anonymize_text
from domain.spans import Span

NAMES = ("Ada Lovelace", "Grace Hopper", "Ada")
EMAIL = re.compile(r"[\w.]+@[\w.]+\.\w+")
CARD = re.compile(r"\d{16}")


class Finder:
    """Names from a list, e-mails and cards by their shape, as a real detector would report them."""

    def __init__(self, score: float = 0.9) -> None:
        self.score = score

    def detect(self, text: str) -> Sequence[Span]:
        found = [Span("PERSON", *m.span(), self.score) for name in NAMES for m in re.finditer(name, text)]
        found += [Span("EMAIL_ADDRESS", *match.span(), 1.0) for match in EMAIL.finditer(text)]
        found += [Span("CREDIT_CARD", *match.span(), 1.0) for match in CARD.finditer(text)]
        found += [Span("DATE_TIME", *m.span(), 0.9) for m in re.finditer(r"\d{4}-\d\d-\d\d", text)]
        return found


def clean(text: str, rules: Rules | None = None) -> str:
    content = anonymize_text(text, Finder(), rules).messages[0]["content"]
    assert isinstance(content, str)
    return content


def test_the_same_value_is_the_same_pseudonym_in_all_messages() -> None:
    result = anonymize(
        [
            {"role": "user", "content": "I am Ada Lovelace, ada@example.com."},
            {
                "role": "assistant",
                "content": "Hello Ada Lovelace and Grace Hopper",
            },
        ],
        Finder(),
    )

    assert result.messages[0]["content"] == "I am <PERSON_1>, <EMAIL_ADDRESS_1>."
    assert result.messages[1]["content"] == "Hello <PERSON_1> and <PERSON_2>"
    assert result.mapping == {
        "<PERSON_1>": "PERSON",
        "<EMAIL_ADDRESS_1>": "EMAIL_ADDRESS",
        "<PERSON_2>": "PERSON",
    }


def test_nothing_that_is_returned_holds_a_clear_value() -> None:
    result = anonymize([{"role": "user", "content": "Ada Lovelace paid with 4111111111111111"}], Finder())

    assert "Ada" not in repr(result)
    assert "4111" not in repr(result)


def test_a_value_seen_once_is_masked_where_the_detector_missed_it() -> None:
    class Once:
        def detect(self, text: str) -> Sequence[Span]:
            place = text.find("name is Zoltan")
            return [Span("PERSON", place + 8, place + 14, 0.9)] if place >= 0 else []

    result = anonymize([{"content": "Ask Zoltan."}, {"content": "My name is Zoltan"}], Once())

    assert [message["content"] for message in result.messages] == ["Ask <PERSON_1>.", "My name is <PERSON_1>"]


def test_json_inside_strings_is_walked_and_keys_and_spacing_are_kept() -> None:
    arguments = '{"to":  "ada@example.com", "nested": "{\\"who\\": \\"Grace Hopper\\"}", "n": 1.50}'
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "send", "arguments": arguments}}
        ],
    }

    found = anonymize([message], Finder()).messages[0]

    call = found["tool_calls"][0]["function"]
    assert call["arguments"] == (
        '{"to":  "<EMAIL_ADDRESS_1>", "nested": "{\\"who\\": \\"<PERSON_1>\\"}", "n": 1.50}'
    )
    assert (call["name"], found["tool_calls"][0]["id"], found["content"]) == ("send", "call_1", None)


def test_long_numbers_are_looked_at_and_amounts_stay_numbers() -> None:
    result = anonymize(
        [{"data": {"card": 4111111111111111, "total": 1234.5, "count": 12, "paid": True}}], Finder()
    )

    assert result.messages[0]["data"] == {
        "card": "<CREDIT_CARD_1>",
        "total": 1234.5,
        "count": 12,
        "paid": True,
    }
    assert clean('{"card": 4111111111111111, "n": 5}') == '{"card": "<CREDIT_CARD_1>", "n": 5}'


def test_content_parts_are_walked_and_images_refused_unless_allowed() -> None:
    text = {"role": "user", "content": [{"type": "text", "text": "Ada Lovelace"}]}
    image = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}],
    }

    assert anonymize([text], Finder()).messages[0]["content"][0] == {"type": "text", "text": "<PERSON_1>"}
    with pytest.raises(BinaryContent, match="image_url"):
        anonymize([image], Finder())
    assert anonymize([image], Finder(), Rules(allow_images=True)).messages == [image]


@pytest.mark.parametrize(
    "value",
    [
        {"password": "blue sky"},
        {"passwords": 1, "secret": ["blue sky", "blue sky"]},
        {"headers": {"Authorization": "Bearer sk-" + "abcdefghijklmnop1234"}},
        {"config": '{"apiKey": "plain"}'},
        {"email": "someone at home"},
        {"ada@example.com": 1},
        {"role": "ghp_" + "A1b2C3d4E5f6G7h8I9j0"},
        {"tool_call_id": "sk-" + "abcdefghijklmnop1234"},
    ],
)
def test_personal_values_are_masked_by_field_name_key_or_shape(value: dict[str, Any]) -> None:
    text = json.dumps(anonymize([value], Finder()).messages)

    for clear in ("blue sky", "abcdefghijklmnop", "plain", "someone", "ada@", "A1b2C3"):
        assert clear not in text


def test_dates_are_kept_by_default_and_go_when_the_rules_say_so() -> None:
    assert clean("Due 2024-05-01") == "Due 2024-05-01"
    assert clean("Due 2024-05-01", Rules(keep=frozenset())) == "Due <DATE_TIME_1>"


def test_project_rules_allow_deny_match_and_raise_thresholds() -> None:
    rules = Rules(
        allow=frozenset({"grace hopper"}),
        deny=("Project Falcon",),
        patterns={"ORDER_NUMBER": r"\bORD-\d{6}\b"},
        thresholds={"PERSON": 0.95},
    )

    assert clean("Grace Hopper on project falcon, ORD-123456, Ada", rules) == (
        "Grace Hopper on <DENIED_1>, <ORDER_NUMBER_1>, Ada"
    )


def test_a_connection_string_goes_as_a_whole() -> None:
    assert clean("use postgres://app:pw@db.example.com/x now") == "use <CONNECTION_STRING_1> now"


def test_uncertain_spans_are_named_for_a_person() -> None:
    result = anonymize_text("Ada Lovelace, ada@example.com", Finder(score=0.5))

    assert [span.placeholder for span in result.uncertain] == ["<PERSON_1>"]
    (first, second) = result.spans
    assert (first.path, first.start, first.end, first.score) == ("0.content", 0, 10, 0.5)
    assert second.entity == "EMAIL_ADDRESS"


def test_a_placeholder_typed_by_a_user_is_never_given_to_someone_else() -> None:
    assert clean("<PERSON_1> met Ada Lovelace") == "<PERSON_1> met <PERSON_2>"


def test_one_book_joins_prompt_and_correction() -> None:
    book = PseudonymBook()
    first = anonymize_text("Grace Hopper and Ada Lovelace", Finder(), book=book)
    second = anonymize_text("Ada Lovelace", Finder(), book=book)

    assert first.messages[0]["content"] == "<PERSON_1> and <PERSON_2>"
    assert second.messages[0]["content"] == "<PERSON_2>"


def test_the_input_is_not_changed() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Ada Lovelace"}]}
    before = json.dumps(message)

    anonymize([message], Finder())

    assert json.dumps(message) == before


pieces = st.sampled_from(
    [
        *NAMES,
        "ada@example.com",
        "4111111111111111",
        "<PERSON_1>",
        "<PERSON_7>",
        " met ",
        "password=abc12",
        "\n",
        "{",
        '"a"',
    ]
)
texts = st.lists(pieces | st.text(max_size=6), max_size=8).map("".join)
contents = st.recursive(
    texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)


@given(st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": contents}), max_size=3))
def test_anonymizing_twice_changes_nothing(messages: list[dict[str, Any]]) -> None:
    once = anonymize(messages, Finder())
    twice = anonymize(once.messages, Finder())

    assert twice.messages == once.messages
    assert twice.mapping == once.mapping


@given(st.lists(st.fixed_dictionaries({"content": contents | contents.map(json.dumps)}), max_size=3))
def test_no_planted_value_survives(messages: list[dict[str, Any]]) -> None:
    text = json.dumps(anonymize(messages, Finder()).messages)

    assert not any(value in text for value in ("Lovelace", "Hopper", "ada@example.com", "4111111111111111"))
