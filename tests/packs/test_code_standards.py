"""The code standards pack: sound tasks, and a sample judged by ruff and by calls for real."""

import warnings
from typing import Any

import pytest

from packs.code_standards import PACK
from packs.coding.own_code import function
from tests.packs.seeded_checks import assert_tasks_are_sound
from workers.evidence import sandbox_collectors
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.scripted import play_solution

NAMES = [family.name for family in PACK.families]


@pytest.fixture(scope="module")
def collectors() -> Any:
    return sandbox_collectors(BubblewrapBackend())


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=15)


@pytest.mark.parametrize("family", NAMES)
async def test_gold_passes_and_nothing_and_every_mistake_fail(family: str, collectors: Any) -> None:
    for task in PACK.generate(family, seed=21, count=1):
        gold = await play_solution(task, PACK.gold_answer(task), collectors=collectors)
        assert gold.state == "passed", (task.id, gold.error, gold.verdict)
        assert gold.hidden is not None
        assert gold.hidden.state == "passed"
        for name, solution in {"nothing": "", **PACK.bad_answers(task)}.items():
            played = await play_solution(task, solution, collectors=collectors, hidden_share=0.0)
            assert played.state == "failed", (task.id, name, played.state, played.error)


@pytest.mark.parametrize("family", [name for name in NAMES if name != "naming"])
def test_code_behaves_the_same_before_and_after(family: str) -> None:
    warnings.simplefilter("ignore", SyntaxWarning)  # "is" with a literal is one of the things to repair
    for task in PACK.generate(family, seed=22, count=10):
        first = task.verifier.params["first"]
        name, calls = first["params"]["entry_point"], first["reference"]["calls"]
        before = function(str(PACK.bad_answers(task)["unchanged"]), name)
        after = function(str(PACK.gold_answer(task)), name)

        plain = [call["args"] for call in calls if "'t'" not in str(call["args"])]
        assert [before(*args) for args in plain] == [after(*args) for args in plain]


def test_the_simple_family_is_short() -> None:
    for task in PACK.generate("style_simple", seed=4, count=50):
        assert len(str(task.messages[0].content)) < 100
        assert len(PACK.gold_answer(task)) < 100


async def test_unchanged_code_earns_nothing_and_half_of_the_work_earns_half(collectors: Any) -> None:
    tasks = PACK.generate("style_fix", seed=23, count=20)
    task = next(t for t in tasks if t.verifier.params["then"]["reference"]["findings"] == 2)
    bad = PACK.bad_answers(task)

    unchanged = await play_solution(task, bad["unchanged"], collectors=collectors)
    half = await play_solution(task, bad["half_done"], collectors=collectors)

    assert unchanged.verdict is not None
    assert half.verdict is not None
    assert unchanged.verdict.score == 0.0
    assert half.verdict.score == 0.5
