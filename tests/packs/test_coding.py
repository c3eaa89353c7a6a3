"""The coding pack: sound tasks, answers made again from the id, and a sample judged for real."""

import json
import random
from typing import Any

import pytest

from domain.verifiers import check_spec
from packs.coding import PACK
from packs.coding.repositories import REPOSITORIES
from packs.coding.repositories.repository import Loaded, planted
from packs.coding.suites import cases, noticed
from tests.packs.seeded_checks import assert_tasks_are_sound, renamed
from workers.evidence import sandbox_collectors
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.scripted import play_solution

NAMES = [family.name for family in PACK.families]
SIMPLE = [name for name in NAMES if name.endswith("_simple")]
WORLDS = [family.name for family in PACK.families if family.environment != "single_turn"]


@pytest.fixture(scope="module")
def collectors() -> Any:
    return sandbox_collectors(BubblewrapBackend())


def test_there_are_eight_families_and_two_for_very_small_models() -> None:
    assert len(NAMES) >= 8
    assert len(SIMPLE) >= 2


@pytest.mark.parametrize("family", [name for name in NAMES if name not in WORLDS])
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=10)


def test_repositories_differ_by_their_files_where_the_reports_are_the_same() -> None:
    tasks = PACK.generate("bug_repair", seed=2, count=10)

    assert tasks == PACK.generate("bug_repair", seed=2, count=10)
    assert len({(task.messages, json.dumps(task.environment_params)) for task in tasks}) == 10
    for task in tasks:
        check_spec(task.verifier, task.reference)
        assert task.hidden is not None
        check_spec(task.hidden.verifier, task.hidden.reference)


@pytest.mark.parametrize("family", NAMES)
def test_a_longer_list_begins_with_the_shorter_one_and_reserved_tasks_are_others(family: str) -> None:
    tasks = PACK.generate(family, seed=3, count=8)
    open_ones = PACK.generate(family, seed=3, count=3, reserved=False)
    reserved = PACK.generate(family, seed=3, count=1, reserved=True)

    assert PACK.generate(family, seed=3, count=4) == tasks[:4]
    assert not {task.id for task in open_ones} & {task.id for task in reserved}


@pytest.mark.parametrize("family", ["code_trace", "fix_simple", "trace_simple"])
def test_thousands_of_different_tasks_exist_at_one_seed(family: str) -> None:
    tasks = PACK.generate(family, seed=1, count=1500)

    assert len({task.messages for task in tasks}) == len(tasks)


@pytest.mark.parametrize("family", SIMPLE)
def test_simple_families_are_short(family: str) -> None:
    for task in PACK.generate(family, seed=4, count=50):
        assert len(str(task.messages[0].content)) < 100
        assert len(PACK.gold_answer(task)) < 100


@pytest.mark.parametrize("family", NAMES)
async def test_gold_passes_and_nothing_and_every_mistake_fail(family: str, collectors: Any) -> None:
    (task,) = PACK.generate(family, seed=21, count=1)

    gold = await play_solution(task, PACK.gold_answer(task), collectors=collectors)
    assert gold.state == "passed", (task.id, gold.error, gold.verdict)
    assert task.hidden is None or (gold.hidden is not None and gold.hidden.state == "passed")
    for name, solution in {"nothing": "", **PACK.bad_answers(task)}.items():
        played = await play_solution(task, solution, collectors=collectors)
        assert played.state == "failed", (task.id, name, played.state, played.error)


def test_no_task_shows_its_judged_calls() -> None:
    for task in PACK.generate("code_functions", seed=5, count=40):
        assert task.hidden is not None
        judged, hidden = task.reference["calls"], task.hidden.reference["calls"]
        assert not [call for call in hidden if call in judged]
        assert len({json.dumps(call["expected"]) for call in judged}) > 1


def test_visible_and_hidden_tests_share_no_call_and_both_notice_the_bug() -> None:
    for task in PACK.generate("bug_repair", seed=5, count=10):
        shown = "".join(task.environment_params["files"].values())
        hidden = task.reference["tests"]["tests/test_hidden.py"]
        calls = [line.strip() for line in hidden.splitlines() if line.strip().startswith("same(")]
        assert task.reference["failing"]
        assert calls
        assert not [call for call in calls if call.removeprefix("same(").rpartition(", ")[0] in shown]
        assert "test_hidden" not in shown


@pytest.mark.parametrize("name", REPOSITORIES)
def test_every_bug_of_a_repository_can_be_planted_and_noticed(name: str) -> None:
    missed: dict[str, int] = {}
    for seed in range(4):
        rng = random.Random(seed)
        repository = REPOSITORIES[name](rng)
        drawn = cases(repository, rng, 25)
        for bug in repository.bugs:
            broken = Loaded(planted(repository.files, (bug,)))
            missed.setdefault(bug.old, 0)
            missed[bug.old] += not any(noticed(case, broken) for case in drawn)

    assert max(missed.values()) < 4, missed


@pytest.mark.parametrize(
    "id",
    ["case-1", "coding.poetry.1.1", "other.code_trace.1.1", "coding.code_trace.x.1", "coding.code_trace.1"],
)
def test_answers_exist_only_for_tasks_of_this_pack(id: str) -> None:
    (task,) = PACK.generate("code_trace", seed=1, count=1)

    with pytest.raises(ValueError, match="not from the pack"):
        PACK.gold_answer(renamed(task, id))


def test_an_unknown_family_is_an_error() -> None:
    with pytest.raises(KeyError):
        PACK.generate("poetry", seed=1, count=1)
