"""The finance pack: tasks that add up, gold that passes, and the mistakes that models make, which fail."""

import json
import random
import re

import pytest

from domain.verifiers import verify
from packs.finance import PACK
from packs.finance.figures import STYLES, misprinted
from packs.finance.ledgers import books
from packs.finance.statements import LAYOUTS, balance_sheet, income_statement, render
from tests.packs.seeded_checks import assert_answers_are_judged_right, assert_tasks_are_sound
from workers.scripted import play_solution

NAMES = [family.name for family in PACK.families]
SINGLE = [family.name for family in PACK.families if family.environment == "single_turn"]
SIMPLE = ("balance_check", "roll_forward", "amount_reading")


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=25)


@pytest.mark.parametrize("family", SINGLE)
def test_gold_passes_and_nothing_and_every_mistake_fail(family: str) -> None:
    assert_answers_are_judged_right(PACK, family, count=20)


async def test_a_filing_is_solved_by_looking_and_not_by_bending() -> None:
    for task in PACK.generate("filing_review", seed=6, count=4):
        gold = await play_solution(task, PACK.gold_answer(task), collectors={})
        assert gold.state == "passed", (task.id, gold.error, gold.verdict)
        assert gold.hidden is not None
        assert gold.hidden.state == "passed"
        for name, solution in {"nothing": "", **PACK.bad_answers(task)}.items():
            played = await play_solution(task, solution, collectors={})
            assert played.state == "failed", (task.id, name, played.error)


@pytest.mark.parametrize("family", SIMPLE)
def test_even_the_smallest_families_have_a_thousand_tasks(family: str) -> None:
    assert len(PACK.generate(family, seed=1, count=1_000)) == 1_000


@pytest.mark.parametrize("family", SIMPLE)
def test_simple_families_are_short(family: str) -> None:
    for task in PACK.generate(family, seed=4, count=50):
        assert len(str(task.messages[-1].content)) < 130
        assert len(str(PACK.gold_answer(task))) <= 16


@pytest.mark.parametrize("draw", [income_statement, balance_sheet])
def test_statements_keep_all_their_relations(draw: object) -> None:
    for seed in range(60):
        statement = draw(random.Random(seed))  # type: ignore[operator]
        for relation in statement.relations:
            assert relation.worked_out(statement.values) == statement.values[relation.total]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_figure_stands_in_the_line_that_is_named_as_its_source(layout: str) -> None:
    statement = income_statement(random.Random(4))

    text, sources = render(statement, layout)

    for line in statement.lines:
        assert sources[line.key] in text
        assert statement.printed(line, line.value) in sources[line.key]


def test_a_misprint_is_never_the_right_figure() -> None:
    rng = random.Random(1)

    for _ in range(500):
        value = rng.choice((1, -1)) * rng.randint(10, 10**7)
        assert misprinted(rng, value) != value


@pytest.mark.parametrize("style", STYLES)
def test_notations_differ_in_separators_and_negatives_only(style: object) -> None:
    written = style.write(-123_456_789, 2)  # type: ignore[attr-defined]

    assert re.sub("[^0-9]", "", written) == "123456789"
    assert written[0] in "(-"


def test_both_ledgers_of_a_reconciliation_differ_by_what_is_listed() -> None:
    for seed in range(80):
        held = books(random.Random(seed))
        gap = sum(one.amount for one in held.bank) - sum(one.amount for one in held.ledger)
        listed = sum(one.amount for one in held.only_bank) - sum(one.amount for one in held.only_ledger)
        listed += sum(ours.amount - theirs.amount for ours, theirs in held.differs)
        assert gap == listed


def test_a_broken_chain_earns_nothing_for_what_follows_it() -> None:
    (task,) = PACK.generate("statement_review", seed=3, count=1)
    gold = json.loads(str(PACK.gold_answer(task)))

    verdict = verify(task, json.dumps({**gold, "check": {"line": "Cash", "reported": 1, "correct": 2}}), {})

    scores = {check.name: check.score for check in verdict.checks}
    assert scores == {"figures": 1.0, "check": 0.0, "ratio": 0.0, "covenant": 0.0}
    assert verdict.score == pytest.approx(2 / 6)


def test_a_right_conclusion_alone_earns_nothing() -> None:
    for task in PACK.generate("invoice_approval", seed=3, count=20):
        decision = json.loads(str(PACK.gold_answer(task)))["decision"]
        assert verify(task, json.dumps({"decision": decision}), {}).score == 0.0


def test_the_deviating_figure_and_its_line_are_named() -> None:
    (task,) = PACK.generate("income_statement", seed=8, count=1)
    gold = json.loads(str(PACK.gold_answer(task)))
    key = next(iter(gold))

    verdict = verify(task, json.dumps({**gold, key: gold[key] + 999}), {})

    assert repr(key) in verdict.reasons[0]
    assert "Source: " in verdict.reasons[0]
