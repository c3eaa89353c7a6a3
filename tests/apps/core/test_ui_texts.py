"""Transcripts, masked spans, differences, keys, states."""

import pytest

from apps.core.models import WorkUnit
from apps.core.ui.figures import figure_json
from apps.core.ui.states import look_of
from apps.core.ui.texts import diff_lines, key_signs, masked, turns


def test_pseudonyms_are_marked_and_markup_is_escaped() -> None:
    html = masked("Hi <PERSON_1>, <b>bold</b>")

    assert '<span class="mask">&lt;PERSON_1&gt;</span>' in html
    assert "<b>" not in html


def test_an_unsure_word_cannot_break_the_markup() -> None:
    html = masked("class of <PERSON_1>", unsure=["class", "span"])

    assert html.count("mask-unsure") == 1
    assert '<span class="mask">&lt;PERSON_1&gt;</span>' in html


def test_tool_calls_read_as_calls() -> None:
    call = {"function": {"name": "refund", "arguments": {"amount": 39.9}}}

    turn = turns([{"role": "assistant", "content": None, "tool_calls": [call]}])[0]

    assert turn.code
    assert "refund({&quot;amount&quot;: 39.9})" in turn.said


def test_images_from_elsewhere_are_not_loaded() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/spy.png"}},
        {"type": "image_url", "image_url": {"url": "//example.com/spy.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]

    turn = turns([{"role": "user", "content": parts}])[0]

    assert turn.said == "What is this?"
    assert turn.images == ("data:image/png;base64,AA==",)


def test_a_difference_shows_what_went_and_what_came() -> None:
    lines = diff_lines("a\nb\nc", "a\nB\nc")

    assert [(line.sign, line.text) for line in lines] == [(" ", "a"), ("−", "b"), ("+", "B"), (" ", "c")]


def test_long_equal_stretches_are_counted_instead_of_shown() -> None:
    old = "\n".join(str(i) for i in range(40))

    lines = diff_lines(old, old.replace("20", "twenty"))

    assert lines[0].text == "17 equal lines"
    assert lines[-1].text == "16 equal lines"
    assert diff_lines(old, old) == []


@pytest.mark.parametrize(
    ("keys", "html"),
    [("Control+Enter", "<kbd>Ctrl ⏎</kbd>"), ("g e", "<kbd>g</kbd> <kbd>e</kbd>"), ("<", "<kbd>&lt;</kbd>")],
)
def test_keys_read_as_they_are_printed_on_them(keys: str, html: str) -> None:
    assert key_signs(keys) == html


def test_a_figure_cannot_close_its_script_and_gaps_stay_gaps() -> None:
    text = figure_json({"data": [{"y": [1.0, float("nan")], "name": "</script><b>"}]})

    assert "</script>" not in text
    assert '"y": [1.0, null]' in text


@pytest.mark.parametrize("state", WorkUnit.State.values)
def test_every_state_of_a_unit_has_an_icon_of_its_own(state: str) -> None:
    assert look_of(state).icon != "•"


def test_a_state_is_known_in_any_spelling_and_may_be_renamed() -> None:
    assert look_of("Rolled back") == look_of("rolled_back")
    assert look_of("holding", "holding at 10 %").word == "holding at 10 %"
    assert look_of("something new").word == "something new"


def test_texts_of_the_same_few_lines_are_compared_as_a_whole() -> None:
    """Thousands of equal lines make millions of pairs; models that lose the thread write such answers."""
    old, new = "one\n" + "a\nb\n" * 20_000 + "end", "one\n" + "b\na\nc\n" * 20_000 + "end"

    lines = diff_lines(old, new)

    assert [(line.sign, line.text) for line in lines[:3]] == [(" ", "one"), ("−", "a"), ("−", "b")]
    assert len(lines) == 2_001
    assert lines[-1].text.endswith("more lines")
    assert diff_lines(old, old) == []
    assert [line.sign for line in diff_lines("a\n" * 9_000, "a\n" * 9_000 + "b")][-1] == "+"


@pytest.mark.parametrize(
    "url", ["/\\evil.example/a.png", "//evil.example/a.png", "https://evil.example/a.png"]
)
def test_an_image_from_elsewhere_is_not_loaded(url: str) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    assert turns([{"role": "user", "content": [part]}])[0].images == ()
