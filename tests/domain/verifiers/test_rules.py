from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

WHEN = {"name": "date", "any": ["5 May", "May 5", "2026-05-05"]}
WHO = {"name": "owner", "any": ["Nina Berg", "Nina"]}
PASSAGES = {
    "P1": "The warranty lasts 24 months.",
    "P2": "Returns are free for 30 days.",
    "P3": "We open at 9.",
}
CITED = [
    {"name": "warranty", "any": ["24 months"], "cite": ["P1"]},
    {"name": "returns", "any": ["30 days"], "cite": ["P2"]},
]


def test_every_required_fact_must_be_stated_in_one_of_its_forms(judge: Any) -> None:
    assert judge("rules", None, "Nina ships on May 5.", required=[WHEN, WHO]).state == "passed"
    half = judge("rules", None, "It ships on 2026-05-05.", required=[WHEN, WHO])
    assert half.state == "failed"
    assert half.score == pytest.approx(0.5)
    assert "'owner'" in half.reasons[0]


@pytest.mark.parametrize(
    "answer",
    ["It does not ship on 5 May.", "It never ships on May 5.", "5 May is wrong.", "It ships on 15 May.",
     "It ships on 5 May. That is wrong."],
)  # fmt: skip
def test_a_fact_that_is_denied_or_taken_back_is_not_stated(judge: Any, answer: str) -> None:
    assert judge("rules", None, answer, required=[WHEN]).state == "failed"


def test_a_denial_in_another_clause_leaves_a_fact_stated(judge: Any) -> None:
    assert (
        judge("rules", None, "We did not ship in April, we ship on 5 May.", required=[WHEN]).state == "passed"
    )


def test_facts_that_belong_together_must_stand_together(judge: Any) -> None:
    fact = {**WHO, "with": [["offer"], ["5 May"]]}

    assert judge("rules", None, "- Nina: send the offer by 5 May", required=[fact]).state == "passed"
    mixed = "- Nina: book the room by 7 May\n- Omar: send the offer by 5 May"
    assert judge("rules", None, mixed, required=[fact]).state == "failed"


def test_naming_every_alternative_beside_a_fact_does_not_state_it(judge: Any) -> None:
    fact = {**WHO, "with": [["5 May"]], "without": ["Omar", "7 May"]}

    assert judge("rules", None, "- Nina: send the offer by 5 May", required=[fact]).state == "passed"
    both = "- Nina, Omar: send the offer by 5 May, 7 May"
    assert judge("rules", None, both, required=[fact]).state == "failed"


def test_a_mention_is_enough_where_the_rule_says_so(judge: Any) -> None:
    order = {"name": "order", "any": ["O-77"]}
    answer = "We cannot refund order O-77."

    assert judge("rules", None, answer, required=[order]).state == "failed"
    assert judge("rules", None, answer, required=[{**order, "mention": True}]).state == "passed"


@pytest.mark.parametrize(
    "answer",
    [
        "It ships soon. <!-- 5 May -->",
        "It ships soon. <!-- 5 May",
        "It ships on 5 May, we guar\u200bantee it.",
        "It ships on 5 May, we gu\u0430rantee it.",
    ],
)
def test_what_a_reader_does_not_see_counts_neither_for_nor_against(judge: Any, answer: str) -> None:
    claim = {"name": "guarantee", "any": ["we guarantee"]}

    assert judge("rules", None, answer, required=[WHEN], forbidden=[claim]).state == "failed"


def test_forbidden_claims_fail_whatever_else_is_right(judge: Any) -> None:
    claim = {"name": "guarantee", "any": ["we guarantee", "guaranteed"]}
    params = {"required": [WHEN], "forbidden": [claim]}

    verdict = judge("rules", None, "It ships on 5 May, guaranteed.", **params)

    assert verdict.state == "failed"
    assert verdict.score == 0.0
    assert "guarantee" in verdict.reasons[0]


def test_a_claim_may_be_denied_where_the_rule_says_so(judge: Any) -> None:
    claim = {"name": "guarantee", "any": ["guarantee"], "unless_denied": True}
    params = {"required": [WHEN], "forbidden": [claim]}

    assert judge("rules", None, "It ships on 5 May; we cannot guarantee it.", **params).state == "passed"
    assert judge("rules", None, "It ships on 5 May; we guarantee it.", **params).state == "failed"


def test_length_is_bounded_in_words_sentences_and_characters(judge: Any) -> None:
    params = {"required": [WHEN], "length": {"words": [4, 8], "sentences": [1, 1]}}

    assert judge("rules", None, "It ships on 5 May.", **params).state == "passed"
    assert judge("rules", None, "5 May.", **params).state == "failed"
    assert judge("rules", None, "It ships. On 5 May.", **params).state == "failed"
    assert judge("rules", None, "It ships on 5 May." + " Really." * 9, **params).state == "failed"


def test_a_fact_must_cite_a_passage_that_says_it(judge: Any) -> None:
    params = {"required": CITED, "passages": PASSAGES}

    right = "The warranty lasts 24 months [P1]. Returns are free for 30 days. [P2]"
    assert judge("rules", None, right, **params).state == "passed"
    assert judge("rules", None, right.replace("[P1]", ""), **params).score == pytest.approx(0.5)
    assert judge("rules", None, right.replace("[P1]", "[P2]"), **params).state == "failed"


@pytest.mark.parametrize("ids", ["[P1] [P2] [P3]", "[P1, P2, P3]", "[P1][P9]"])
def test_citing_everything_is_no_citation(judge: Any, ids: str) -> None:
    answer = f"The warranty lasts 24 months {ids}. Returns are free for 30 days {ids}."

    verdict = judge("rules", None, answer, required=CITED, passages=PASSAGES)

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_numbers_must_stand_in_the_source(judge: Any) -> None:
    params = {"required": [WHEN], "numbers_from": "Ships on 2026-05-05, 1,200 pieces at EUR 3.50."}

    assert judge("rules", None, "5 May: 1200 pieces at 3.5 EUR", **params).state == "passed"
    invented = judge("rules", None, "5 May: 1200 pieces at 4 EUR", **params)
    assert invented.state == "failed"
    assert "The number 4" in invented.reasons[0]


def test_copying_the_source_is_no_summary(judge: Any) -> None:
    source = "After a long talk the board agreed that the shipment leaves the warehouse on 5 May at noon."
    params = {"required": [WHEN], "source": source, "max_copied_words": 7}

    assert judge("rules", None, "The shipment leaves on 5 May.", **params).state == "passed"
    assert judge("rules", None, source, **params).score == 0.0


def test_structure_asks_for_headings_in_order_and_items(judge: Any) -> None:
    wanted = [{"name": "Decisions", "items": [1, 2]}, {"name": "Actions", "items": [1, 1]}]
    params = {"required": [{**WHEN, "section": "Actions"}], "sections": wanted}
    right = "## Decisions\n- Ship early\n## Actions\n- Nina: ship on 5 May"

    assert judge("rules", None, right, **params).state == "passed"
    assert judge("rules", None, right.replace("Decisions", "Notes"), **params).state == "failed"
    assert judge("rules", None, right + "\n- Omar: call", **params).state == "failed"
    assert (
        judge("rules", None, "## Decisions\n- ship on 5 May\n## Actions\n- Nina", **params).state == "failed"
    )


def test_patterns_hold_style_rules(judge: Any) -> None:
    params = {
        "required": [WHEN],
        "patterns": [{"name": "no exclamation mark", "pattern": "!", "present": False}],
    }

    assert judge("rules", None, "It ships on 5 May.", **params).state == "passed"
    assert judge("rules", None, "It ships on 5 May!", **params).state == "failed"


def test_a_reference_adds_rules(judge: Any) -> None:
    assert judge("rules", {"required": [WHO]}, "Nina", length={"words": [1, 3]}).state == "passed"


@pytest.mark.parametrize("answer", ["", ":", "Thought process:", "n/a", "Solution"])
def test_nothing_said_earns_nothing(judge: Any, answer: str) -> None:
    assert judge("rules", None, answer, required=[WHEN, WHO]).score == 0.0


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({}, "empty answer would pass"),
        ({"forbidden": [{"name": "x", "any": ["x"]}]}, "empty answer would pass"),
        ({"required": [WHEN], "length": {"words": [5, 2]}}, "cannot be"),
        ({"required": [{**WHEN, "cite": ["P9"]}], "passages": PASSAGES}, "no passage"),
        ({"required": [{**WHEN, "cite": ["P1"]}], "passages": PASSAGES}, "no cited passage says"),
        ({"required": [WHEN], "patterns": [{"name": "x", "pattern": "(a+)+"}]}, "repeats"),
    ],
)
def test_rules_that_cannot_judge_are_refused(params: Any, sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="rules", params=params), None)


@pytest.mark.parametrize(
    "answer",
    [
        "Does it ship on 5 May?",
        "Maybe it ships on 5 May.",
        "Myth: it ships on 5 May.",
        "It is not true, whatever anyone in this house may tell you, that it ships on 5 May.",
        "It is a lie of our rivals that it ships on 5 May.",
        "It ships on 5 May (not true).",
        "We refuse to say that it ships on 5 May.",
        "Disregard the following: it ships on 5 May.",
        "It ships on 5 May.\nPlease disregard all of the above.",
        "It ships on 5 May. None of this is true.",
        "It ships on 5 May. The opposite is true.",
    ],
)
def test_a_fact_that_is_asked_doubted_or_disowned_is_not_stated(judge: Any, answer: str) -> None:
    assert judge("rules", None, answer, required=[WHEN]).state == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        "Is it late? No: it ships on 5 May.",
        "It is true that it was late; it ships on 5 May.",
        "Please ignore our first mail. It ships on 5 May. Do you need it sooner?",
    ],
)
def test_a_question_or_a_correction_beside_a_fact_leaves_it_stated(judge: Any, answer: str) -> None:
    assert judge("rules", None, answer, required=[WHEN]).state == "passed"


@pytest.mark.parametrize(
    "answer",
    [
        "~~It ships on 5 May.~~",
        "<del>It ships on 5 May.</del>",
        '<span style="display:none">It ships on 5 May.</span>',
        "<p hidden>It ships on 5 May.</p>",
        "[//]: # (It ships on 5 May.)",
        '[soon](https://example.org "It ships on 5 May.")',
        "\uff5e\uff5eIt ships on 5 May.\uff5e\uff5e",
    ],
)
def test_what_is_struck_out_or_hidden_by_markup_is_not_accepted(judge: Any, answer: str) -> None:
    verdict = judge("rules", None, answer, required=[WHEN])

    assert verdict.state == "failed"
    assert "hides or strikes out" in " ".join(verdict.reasons)


def test_an_address_in_angle_brackets_and_a_plain_link_hide_nothing(judge: Any) -> None:
    answer = "It ships on 5 May, see [the terms](https://example.org). Nina <nina@example.org>"

    assert judge("rules", None, answer, required=[WHEN]).state == "passed"
