import time
from re import _parser as parser
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec
from domain.verifiers.pattern_cost import exponent


def test_the_whole_answer_must_match(judge: Any) -> None:
    assert judge("regex", None, " INV-204 ", pattern="INV-[0-9]{3}").state == "passed"
    assert judge("regex", None, "INV-2045", pattern="INV-[0-9]{3}").state == "failed"
    assert judge("regex", None, "It is INV-204.", pattern="INV-[0-9]{3}").state == "failed"
    assert judge("regex", None, "", pattern="INV-[0-9]{3}").state == "failed"


def test_in_mode_search_one_match_is_right_and_several_are_not(judge: Any) -> None:
    params = {"pattern": "INV-[0-9]{3}", "mode": "search"}

    assert judge("regex", None, "It is INV-204.", **params).state == "passed"
    assert judge("regex", None, "INV-204 or INV-205", **params).state == "failed"
    assert judge("regex", None, "INV-204 and INV-205", count=2, **params).state == "passed"


def test_named_groups_are_compared_with_the_reference(judge: Any) -> None:
    params = {"pattern": r"(?P<year>[0-9]{4})-(?P<code>[A-Z]+)"}
    reference = {"year": "2026", "code": "AB"}

    assert judge("regex", reference, "2026-AB", **params).state == "passed"
    wrong = judge("regex", reference, "2026-AC", **params)
    assert wrong.score == pytest.approx(0.5)
    assert "'code'" in wrong.reasons[0]


def test_what_is_forbidden_fails_whatever_else_matches(judge: Any) -> None:
    params = {"pattern": ".*ready.*", "forbidden": ["guarantee"], "flags": ["ignore_case"]}

    assert judge("regex", None, "Ready on Monday", **params).state == "passed"
    assert judge("regex", None, "Ready, we GUARANTEE it", **params).state == "failed"


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a*)*b",
        r"(\w|aa)*$",
        "(.*a){20}",
        "(a|a?)+$",
        "(aa?)*b",
        r"(a)(\1b)*c",
        "(",
        "a" * 2000,
        ".*" * 9 + "x",
    ],
)
def test_a_pattern_that_could_run_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind="regex", params={"pattern": pattern}), None)


@pytest.mark.parametrize(
    "pattern", ["(?:ab|cd)+", r"(?:[0-9]{3},)*[0-9]{3}", "a(?:b+)c", "(?:x|y+)z", "(?i:yes|no)"]
)
def test_ordinary_patterns_are_accepted(pattern: str) -> None:
    check_spec(VerifierSpec(kind="regex", params={"pattern": pattern}), None)


def test_a_pattern_that_an_empty_answer_fits_is_refused() -> None:
    with pytest.raises(InvalidVerifier, match="empty answer"):
        check_spec(VerifierSpec(kind="regex", params={"pattern": "a*"}), None)


def test_a_very_long_answer_is_not_searched(judge: Any) -> None:
    assert judge("regex", None, "a" * 30_000, pattern="a+").state == "failed"


@pytest.mark.parametrize(
    ("pattern", "whole", "anywhere"),
    [
        ("INV-[0-9]{4}", 1, 1),
        ("a*b", 1, 2),
        (r"\w+\s+\w+", 1, 2),
        (r"[0-9]+\.[0-9]+", 1, 2),
        ("a+|a+|a+", 1, 2),
        ("a*a*b", 2, 3),
        ("A*(?i:a)*", 2, 3),
        (".*foo.*bar", 2, 3),
        ("(?:a|b)*a*c", 2, 3),
        ("é+é+", 2, 3),
        (r"\w+\s*\w+\s*\w+!", 3, 4),
        ("a*(?=a*b)", 1, 2),
        ("a*+a*", 1, 2),
        ("a*a*ba*a*ba*a*bc", 4, 5),
        (r"(.*)\1x", 2, 3),
    ],
)
def test_the_growth_of_a_pattern_s_time_is_estimated(pattern: str, whole: int, anywhere: int) -> None:
    tree = parser.parse(pattern)

    assert (exponent(tree, search=False), exponent(tree, search=True)) == (whole, anywhere)


@pytest.mark.parametrize("pattern", ["a*a*a*b", r"\w+\s*\w+\s*\w+!", "a*?a*?a*?a*?x", "(a*)(a*)(a*)b"])
def test_a_pattern_whose_time_grows_with_the_fourth_power_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidVerifier, match="too many ways"):
        check_spec(VerifierSpec(kind="regex", params={"pattern": pattern, "mode": "search"}), None)


@pytest.mark.parametrize(
    "pattern",
    [
        "a?" * 30 + "b", "a{0,8}" * 20 + "b", "(?:a{0,8}){8}b", "(?:a?b?){8}" * 4 + "c",
        "(?:a|aa)" * 30 + "b", "((a{0,5}){0,5}){0,5}b", "(?:x|xx|xxx)" * 14 + "y",
        "(" * 40 + "a?" + "){8}" * 40 + "b",
        "a*a*ba*a*ba*a*bc",
    ],
)  # fmt: skip
def test_short_repeats_and_choices_that_multiply_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidVerifier, match=r"too many ways|write it flat"):
        check_spec(VerifierSpec(kind="regex", params={"pattern": pattern}), None)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?",
        r"\d{1,3}(?:,\d{3}){0,6}(?:\.\d{1,2})?",
        r"(?:Mr|Mrs|Ms|Dr)\.? [A-Z]\w+", r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}",
        "(?:one|two|three|four|five)?x" * 9,
    ],
)  # fmt: skip
def test_short_repeats_that_the_next_character_ends_are_accepted(pattern: str) -> None:
    check_spec(VerifierSpec(kind="regex", params={"pattern": pattern}), None)


@pytest.mark.parametrize(
    ("pattern", "mode"), [("a*a*b", "search"), ("a*b", "search"), ("a*a*a*b", "full"), ("a*a*b", "full")]
)
def test_the_worst_text_for_an_accepted_pattern_takes_seconds_at_most(
    judge: Any, pattern: str, mode: str
) -> None:
    began = time.thread_time()

    for length in (1_500, 20_000):
        assert judge("regex", None, "a" * length, pattern=pattern, mode=mode).state == "failed"

    assert time.thread_time() - began < 60.0


def test_a_pattern_of_the_third_power_reads_short_texts_only_and_says_so(judge: Any) -> None:
    verdict = judge("regex", None, f"foo {'x' * 1600} bar", pattern=".*foo.*bar", mode="search")

    assert "at most 1500 are read" in verdict.reasons[0]
    assert judge("regex", None, "a foo, a bar", pattern=".*foo.*bar", mode="search").state == "passed"
