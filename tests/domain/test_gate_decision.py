"""Decisions of a gate: passed on evidence, failed when shown, undecided otherwise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gate_decision import GateEvidence, gate_decide
from domain.gate_rules import rules_read
from domain.summary import summarize


def evidence(states: str, **changes: Any) -> GateEvidence:
    """One case a letter: p passed, f failed, e error, u unscored."""
    names = {"p": "passed", "f": "failed", "e": "error", "u": "unscored"}
    keys = [f"case-{at}" for at in range(len(states))]
    fields: dict[str, Any] = {
        "summary": summarize([names[letter] for letter in states], keys),
        "keys": keys,
        "sources": keys,
        "passed": [int(letter == "p") for letter in states],
        "scored": [int(letter in "pf") for letter in states],
        "samples": 1,
        "base_name": "1.0 standard, run 7",
    }
    return GateEvidence(**{**fields, **changes})


def before(states: str) -> list[tuple[int, int] | None]:
    return [{"p": (1, 1), "f": (0, 1), "e": (0, 0), "-": None}[letter] for letter in states]


def decide(rules: list[dict[str, Any]], found: GateEvidence):
    return gate_decide(rules_read(rules), found)


FLOOR = [{"kind": "floor", "min_rate": 0.75}]


def test_inspect_3707_with_errors_a_gate_is_undecided():
    outcome = decide(FLOOR, evidence("p" * 80 + "f" * 10 + "e" * 10))

    assert outcome.decision == "undecided"
    assert outcome.rules[0].sentence == (
        "80 of 90 scored answers passed, 10 errors, coverage 90 %. At least 95 % must be scored."
    )
    assert outcome.rules[1].state == "undecided"
    assert outcome.rules[1].figures["alone"] == "passed"


def test_a_floor_passes_on_its_lower_limit_only():
    assert decide(FLOOR, evidence("p" * 80 + "f" * 10)).decision == "passed"
    assert decide(FLOOR, evidence("p" * 8 + "f" * 2)).decision == "undecided"
    assert decide(FLOOR, evidence("p" * 40 + "f" * 60)).decision == "failed"


def test_an_undecided_floor_says_how_many_more_cases_would_settle_it():
    sentence = decide(FLOOR, evidence("p" * 16 + "f" * 4)).rules[1].sentence

    assert "75 % lies inside the interval; about 550 more cases would settle it." in sentence


def test_no_results_and_no_rules_pass_nothing():
    assert decide(FLOOR, evidence("")).decision == "undecided"
    assert decide([], evidence("ppp")).decision == "undecided"
    assert decide(FLOOR, evidence("p")).decision == "undecided"


def test_a_failed_rule_outweighs_an_undecided_one():
    rules = [*FLOOR, {"kind": "latency", "p95_ms": 100}]

    outcome = decide(rules, evidence("p" * 40 + "f" * 60))

    assert outcome.decision == "failed"
    assert outcome.sentence.startswith(
        "1 of 3 rules failed. 40 % (31–50), n = 100: all of it lies under 75 %."
    )
    assert outcome.sentence.endswith("1 more undecided.")


NON_INFERIOR = [{"kind": "non_inferiority", "margin": 0.05}]


def test_without_a_baseline_the_margin_is_undecided_and_says_why():
    outcome = decide(NON_INFERIOR, evidence("p" * 50, no_baseline="1.0 has no finished run of this suite."))

    assert outcome.decision == "undecided"
    assert outcome.rules[1].sentence == "1.0 has no finished run of this suite."


def test_a_zero_standard_error_does_not_pass_a_margin():
    few, many = "p" * 40, "p" * 400

    assert decide(NON_INFERIOR, evidence(few, base=before(few))).decision == "undecided"
    assert decide(NON_INFERIOR, evidence(many, base=before(many))).decision == "passed"


def test_the_margin_s_sentence_shows_the_planned_pairs():
    same = "p" * 400

    sentence = decide(NON_INFERIOR, evidence(same, base=before(same))).rules[1].sentence

    assert sentence == (
        "0.0 points against 1.0 standard, run 7 (−0.7 to +0.7, n = 400 pairs, 7 planned): "
        "at most 0.7 worse, within 5."
    )


def test_a_clear_loss_fails_the_margin():
    outcome = decide(NON_INFERIOR, evidence("p" * 60 + "f" * 40, base=before("p" * 100)))

    assert outcome.decision == "failed"
    assert "worse by more than 5" in outcome.rules[1].sentence


def regress(states: str, base: str | None, **rule: Any):
    fields = {"kind": "no_regression", "cases": ["case-0"], **rule}
    return decide([fields], evidence(states, base=before(base) if base else None)).rules[1]


@pytest.mark.parametrize(
    ("now", "base", "state"),
    [
        ("p", "p", "passed"),
        ("f", "p", "failed"),
        ("f", "f", "passed"),  # it did not pass before either
        ("e", "p", "undecided"),
        ("u", "f", "passed"),
        ("f", "-", "undecided"),
        ("f", "e", "undecided"),
        ("p", "-", "passed"),
        ("p", None, "passed"),
        ("f", None, "undecided"),
    ],
)
def test_a_named_case_must_not_be_lost(now: str, base: str | None, state: str):
    assert regress(now, base).state == state


def test_a_case_that_must_pass_needs_no_baseline():
    assert regress("f", None, must="pass").state == "failed"
    assert regress("e", None, must="pass").state == "undecided"


def test_a_named_case_that_is_not_there_is_undecided():
    found = regress("p", "p", cases=["case-0", "gone"])

    assert found.state == "undecided"
    assert found.sentence == "Case gone is not in this suite version."


def test_cases_are_also_named_by_a_tag():
    rule = [{"kind": "no_regression", "tags": ["tier=gold"]}]

    outcome = decide(rule, evidence("pf", base=before("pp"), tags={"tier=gold": [1]}))

    assert outcome.rules[1].sentence == "case-1 passed before and failed now."


def test_a_lost_case_fails_even_where_coverage_is_too_low():
    rule = {"kind": "no_regression", "cases": ["case-0"]}

    outcome = decide([*FLOOR, rule], evidence("f" + "e" * 9, base=before("p" * 10)))

    assert outcome.decision == "failed"


def test_too_many_errors_are_undecided_never_failed():
    outcome = decide([{"kind": "error_rate", "max_rate": 0.01}], evidence("p" * 98 + "ee"))

    assert outcome.decision == "undecided"
    assert "2 of 100 samples ended in an error (2.0 %), more than 1 %." in outcome.rules[1].sentence


@pytest.mark.parametrize(
    ("value", "n", "state"),
    [(90.0, 100, "passed"), (110.0, 100, "failed"), (90.0, 19, "undecided"), (None, 0, "undecided")],
)
def test_latency_has_a_ceiling(value, n, state):
    found = evidence("p" * 20, latency_p95_ms=value, latencies=n)

    assert decide([{"kind": "latency", "p95_ms": 100}], found).decision == state


def test_cost_without_prices_is_undecided():
    rule = [{"kind": "cost", "max_usd": 0.01}]

    assert decide(rule, evidence("p" * 20)).rules[1].sentence == "The target has no prices."
    assert decide(rule, evidence("p" * 20, mean_usd=0.005)).decision == "passed"
    assert decide(rule, evidence("p" * 20, mean_usd=0.02)).decision == "failed"


def test_cost_may_be_counted_in_tokens():
    rule = [{"kind": "cost", "max_tokens": 200}]

    assert decide(rule, evidence("p" * 20, mean_tokens=210.0)).rules[1].sentence == (
        "An answer takes 210.0 tokens (at most 200) on average."
    )


def test_every_value_of_an_axis_has_to_hold():
    rule = [{"kind": "slice_floor", "axis": "family", "min_rate": 0.5}]
    good, bad = "p" * 30, "f" * 30

    both = evidence(good + bad, axes={"family": ["a"] * 30 + ["b"] * 30})
    small = evidence(good + "ppp", axes={"family": ["a"] * 30 + ["b"] * 3})
    held = evidence(good + good, axes={"family": ["a"] * 30 + ["b"] * 30})

    assert decide(rule, both).rules[1].sentence.startswith("family = b: 0 %")
    assert decide(rule, both).decision == "failed"
    assert decide(rule, small).rules[1].sentence == "family = b: n too small (3 cases, 10 are needed)."
    assert decide(rule, held).decision == "passed"


def test_an_axis_that_nothing_has_is_undecided():
    rule = [{"kind": "slice_floor", "axis": "tier", "min_rate": 0.5}]

    assert decide(rule, evidence("p" * 20, axes={"tier": [""] * 20})).decision == "undecided"


@given(st.text("pfeu", max_size=40), st.floats(0.01, 0.99))
def test_a_pass_always_has_coverage_and_a_lower_limit_above_the_floor(states: str, floor: float):
    outcome = decide([{"kind": "floor", "min_rate": floor}], evidence(states))

    if outcome.decision == "passed":
        assert outcome.rules[0].figures["coverage"] >= 0.95
        assert outcome.rules[1].figures["low"] >= floor
