"""The reasoning pack, held against the library; its answers are scored for real in tests/workers/collect."""

import os
import subprocess
import sys

import pytest

from domain.verifiers import check_spec, verify
from domain.verifiers.scorer import scored_text
from packs.reasoning import PACK, entries
from packs.reasoning.catalogue import DATA_SETS, LEFT_OUT
from packs.reasoning.solutions import SOLVERS
from packs.reasoning.tasks import CONFIG
from packs.reasoning.wrong import near_miss

NAMES = [one.name for one in DATA_SETS]


def test_the_catalogue_is_the_librarys() -> None:
    from reasoning_gym.factory import DATASETS

    assert sorted([*NAMES, *LEFT_OUT]) == sorted(DATASETS)
    areas = {one.name: one.area for one in DATA_SETS}
    assert areas == {name: DATASETS[name][0].__module__.split(".")[1] for name in NAMES}
    assert {*SOLVERS, *CONFIG} <= set(NAMES)
    assert len(PACK.families) == len(NAMES) > 100


def test_listing_families_does_not_import_the_library() -> None:
    code = "import sys; from packs.registry import packs; packs(); print('reasoning_gym' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "False"


@pytest.mark.parametrize("name", NAMES)
def test_a_family_makes_sound_tasks_with_answers_right_and_wrong(name: str) -> None:
    (task,) = PACK.generate(f"rg_{name}", seed=5, count=1)
    gold, bad = PACK.gold_answer(task), PACK.bad_answers(task)

    assert isinstance(gold, str)
    check_spec(task.verifier, task.reference)
    assert task.reference["answer"] == gold
    assert scored_text(task, gold) == (gold, "")
    assert len(bad) >= 5
    assert all(isinstance(answer, str) and answer.strip() != gold.strip() for answer in bad.values())
    if task.hidden is not None:
        stricter = task.model_copy(
            update={"verifier": task.hidden.verifier, "reference": task.hidden.reference}
        )
        assert verify(stricter, gold, {}).state == "passed"
        assert all(verify(stricter, str(answer), {}).state == "failed" for answer in bad.values())


def test_the_same_id_is_the_same_task_in_another_process() -> None:
    """Isomorphic strings come out of a set: without a fixed hash seed they differ from run to run."""
    task = PACK.generate("rg_isomorphic_strings", seed=5, count=1)[0]
    code = (
        "from packs.reasoning import PACK; "
        "print(PACK.generate('rg_isomorphic_strings', seed=5, count=1)[0].model_dump_json())"
    )

    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "77"},
    ).stdout  # fmt: skip

    assert said.strip() == task.model_dump_json()


def test_reserved_and_free_tasks_share_no_question() -> None:
    reserved = PACK.generate("rg_chain_sum", seed=1, count=10, reserved=True)
    free = PACK.generate("rg_chain_sum", seed=1, count=10, reserved=False)

    assert not {str(task.messages) for task in reserved} & {str(task.messages) for task in free}


def test_what_the_pack_did_not_make_is_refused() -> None:
    with pytest.raises(KeyError):
        PACK.generate("rg_composite", seed=1, count=1)
    task = PACK.generate("rg_gcd", seed=1, count=1)[0]
    with pytest.raises(ValueError, match="not from the reasoning pack"):
        PACK.gold_answer(task.model_copy(update={"id": "starter.tool_call.1.1"}))


def test_an_entry_that_the_library_cannot_make_says_so_and_the_maker_lives_on() -> None:
    with pytest.raises(entries.NotMade, match="no_such_data_set"):
        entries.entry("no_such_data_set", 1, {})

    assert entries.entry("gcd", 1, {}) is not None


def test_a_maker_that_was_killed_is_started_again() -> None:
    before = entries.entry("lcm", 3, {})
    child = entries._running()
    child.kill()
    child.wait()
    entries._entry.cache_clear()

    assert entries.entry("lcm", 3, {}) == before
    assert entries._running().pid != child.pid


@pytest.mark.parametrize(
    "known",
    ["42", "-3", "0", "1,000", "0.003", "1e10", "True", "no", "A B C", "x", "[1, 2]", "['a', 'b']",
     '{"a": 1}', "50.25°", "$\\frac{93}{329}$", "$3/4$", "UDLR", "(1 + 2)*3", "46 days",
     "3 days, 04:05", "17:30:00"],
)  # fmt: skip
def test_a_near_miss_is_a_miss(known: str) -> None:
    assert near_miss(known).strip() not in ("", known)
