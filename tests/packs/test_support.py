"""The support pack, played through its environment: the policy decides, words alone do nothing."""

import json
from typing import Any

import pytest

from packs.support import PACK
from packs.support.refunds import SCENARIOS
from tests.packs.seeded_checks import assert_answers_are_judged_right, assert_tasks_are_sound
from workers.scripted import play_solution

NAMES = [family.name for family in PACK.families]
SINGLE = [family.name for family in PACK.families if family.environment == "single_turn"]
TOOLS = [family.name for family in PACK.families if family.environment == "tools"]


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=20)


@pytest.mark.parametrize("family", SINGLE)
def test_gold_passes_and_nothing_and_every_mistake_fail(family: str) -> None:
    assert_answers_are_judged_right(PACK, family, count=20)


@pytest.mark.parametrize("family", TOOLS)
async def test_gold_passes_and_nothing_and_every_mistake_fail_in_the_world(family: str) -> None:
    for task in PACK.generate(family, seed=6, count=4):
        gold = await play_solution(task, PACK.gold_answer(task), collectors={})
        assert gold.state == "passed", (task.id, gold.error, gold.verdict)
        assert gold.hidden is not None
        assert gold.hidden.state == "passed"
        for name, solution in {"nothing": "", **PACK.bad_answers(task)}.items():
            played = await play_solution(task, solution, collectors={})
            assert played.state == "failed", (task.id, name, played.error)


@pytest.mark.parametrize("family", TOOLS)
async def test_a_solution_needs_no_more_turns_than_there_are(family: str) -> None:
    for task in PACK.generate(family, seed=8, count=20):
        assert len(PACK.gold_answer(task)) <= task.environment_params["max_turns"] <= 16


def test_every_refund_case_occurs() -> None:
    drawn = {task.source.split("/")[0] for task in PACK.generate("refund_request", seed=1, count=150)}

    missing = set(SCENARIOS) - {layout.removeprefix("refund-") for layout in drawn}
    assert not missing


async def test_a_refund_that_was_only_tried_fails_where_it_is_forbidden() -> None:
    task = _refund("too_late")
    order = next(call for call in PACK.gold_answer(task) if "get_order" in call)
    tried = json.dumps(
        {
            "tool": "refund_order",
            "arguments": {"order": json.loads(order)["arguments"]["order"], "amount": 10**6, "reason": "x"},
        }
    )
    gold = PACK.gold_answer(task)

    played = await play_solution(task, (*gold[:4], tried, *gold[4:]), collectors={})

    assert played.state == "failed"
    assert any("was not allowed" in reason for reason in played.verdict.reasons)


async def test_a_wrong_amount_fails_and_is_named() -> None:
    task = _refund("opened")

    played = await play_solution(task, PACK.bad_answers(task)["amount_without_fee"], collectors={})

    assert played.state == "failed"
    assert any("refunded amount" in reason for reason in played.verdict.reasons)


async def test_a_change_that_nobody_needed_fails() -> None:
    task = _refund("unopened")

    played = await play_solution(task, PACK.bad_answers(task)["unneeded_change"], collectors={})

    assert played.state == "failed"
    assert any("Changed without need" in reason for reason in played.verdict.reasons)


def _refund(scenario: str) -> Any:
    tasks = PACK.generate("refund_request", seed=2, count=60)
    return next(task for task in tasks if task.source.startswith(f"refund-{scenario}/"))
