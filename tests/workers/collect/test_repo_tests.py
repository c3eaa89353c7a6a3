"""Hidden tests against a changed repository: what honest solutions, and what broken ones, come to."""

import asyncio
from dataclasses import replace

import pytest

from domain.verifiers import verify
from tests.workers.collect.conftest import (
    IDS,
    LIMITS,
    SHOP,
    TESTS,
    Grade,
    at_import,
    repository_task,
    score,
    with_total,
)
from workers.collect.repo_tests import collect_repo_tests
from workers.sandbox.bubblewrap import BubblewrapBackend


@pytest.mark.parametrize("mode", ["apart", "inside"])
def test_a_right_repository_passes_every_test(grade: Grade, mode: str) -> None:
    verdict = grade({}, mode=mode)

    assert verdict.state == "passed", verdict.reasons
    assert [check.name for check in verdict.checks if check.role == "terminal"] == IDS


@pytest.mark.parametrize("mode", ["apart", "inside"])
def test_a_wrong_value_fails_its_tests_only(grade: Grade, mode: str) -> None:
    verdict = grade(with_total("return sum(prices) * RATE if prices else 1"), mode=mode)

    assert verdict.state == "failed"
    assert [check.name for check in verdict.checks if check.score == 0.0] == [IDS[1]]
    assert "got 1, expected 0" in verdict.reasons[0]


def test_a_wrong_type_fails(grade: Grade) -> None:
    assert grade(with_total("return float(sum(prices) * RATE)")).state == "failed"
    assert grade(with_total("return bool(sum(prices)) and sum(prices) * RATE")).state == "failed"


def test_partial_credit_is_the_share_of_repaired_tests_and_none_for_a_broken_one(grade: Grade) -> None:
    failing = [IDS[0], IDS[3]]
    half = grade(
        with_total("return sum(prices) * RATE if len(prices) != 2 or 1 in prices else 0"), failing=failing
    )
    broke = grade(with_total("return sum(prices) * RATE or 5"), failing=failing)

    assert half.score == 0.5
    assert broke.score == 0.0


def test_a_loop_without_end_is_ended_and_fails(grade: Grade) -> None:
    verdict = grade(with_total("while True: pass"), limits=replace(LIMITS, cpu_s=1))

    assert verdict.state == "failed"
    assert score(verdict, "finished") == 0.0


def test_a_solution_that_sleeps_is_late_and_fails(grade: Grade) -> None:
    verdict = grade(with_total("import time; time.sleep(60)"), limits=replace(LIMITS, wall_s=1.0))

    assert verdict.state == "failed"
    assert "did not answer in time" in verdict.reasons[0]


def test_an_import_that_fails_fails_every_test(grade: Grade) -> None:
    verdict = grade({"shop/errors.py": None})

    assert verdict.state == "failed"
    assert all(score(verdict, name) == 0.0 for name in IDS)


def test_new_and_deleted_sources_count(grade: Grade) -> None:
    moved = {
        "shop/sums.py": "def total(prices):\n    return sum(prices) * 3\n",
        **with_total("from shop.sums import total as moved; return moved(prices)"),
    }

    assert grade(moved).state == "passed"
    assert grade({"shop/cart.py": None}).state == "failed"


def test_a_text_answer_brings_one_file_or_a_json_object_of_files(backend: BubblewrapBackend) -> None:
    task = repository_task()
    one = task.model_copy(
        update={
            "verifier": task.verifier.model_copy(
                update={"params": {"sources": ["shop/cart.py"], "path": "shop/cart.py"}}
            )
        }
    )

    def state(which: object, answer: str) -> str:
        report = asyncio.run(collect_repo_tests(backend, which, answer, {}, limits=LIMITS))  # type: ignore[arg-type]
        return verify(which, answer, {"repo_tests": report}).state  # type: ignore[arg-type]

    assert state(one, f"Here:\n```python\n{SHOP['shop/cart.py']}```\n") == "passed"
    assert state(one, "def total(prices): return 0") == "failed"
    assert state(one, "") == "failed"
    assert state(task, '{"files": {"shop/errors.py": "class Empty(ValueError): pass"}}') == "passed"
    assert state(task, "I repaired it.") == "failed"


def test_a_workspace_that_did_not_survive_fails(backend: BubblewrapBackend) -> None:
    task, seen = repository_task(), {"workspace": {"status": "died", "files": {}}}

    report = asyncio.run(collect_repo_tests(backend, task, "", seen, limits=LIMITS))

    assert verify(task, "", {"repo_tests": report}).state == "failed"


def test_unittest_cases_are_tests_too(grade: Grade) -> None:
    text = (
        "import unittest\nfrom shop.cart import total\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(total([1]), 3)\n"
        "    def test_b(self):\n        self.assertEqual(total([1]), {})\n"
        "    @unittest.skip('later')\n    def test_c(self):\n        pass\n"
    )
    ids = [f"tests/test_u.py::T::test_{name}" for name in "abc"]

    verdict = grade({}, tests={"tests/test_u.py": text}, ids=ids)

    assert [score(verdict, name) for name in ids] == [1.0, 0.0, 0.0]
    assert "was skipped" in verdict.reasons[-1]


def test_a_test_that_the_task_does_not_know_fails_the_whole(grade: Grade) -> None:
    verdict = grade({}, ids=IDS[:-1])

    assert verdict.state == "failed"
    assert "does not know" in verdict.reasons[0]


def test_without_a_sandbox_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sandbox.bubblewrap.bwrap_candidates", list)
    task, seen = repository_task(), {"workspace": {"status": "ok", "files": SHOP}}

    report = asyncio.run(collect_repo_tests(BubblewrapBackend(), task, "", seen, limits=LIMITS))

    assert verify(task, "", {"repo_tests": report}).state == "unscored"


def test_hidden_tests_and_their_values_never_enter_the_solution_s_sandbox(grade: Grade) -> None:
    spy = """
import os
def seen():
    found = []
    for folder, _, names in os.walk("/workspace"):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as stream:
                text = stream.read()
            if name.startswith("test") or "test_total_of_" + "nothing" in text:
                found.append(name)
    return found
"""
    text = "from checks import same\nfrom shop.cart import seen\n\ndef test_spy():\n    same(seen(), [])\n"

    verdict = grade(at_import(spy), tests={"tests/test_spy.py": text}, ids=["tests/test_spy.py::test_spy"])

    assert verdict.state == "passed", verdict.reasons
    assert "test_total_of_nothing" in TESTS["tests/test_hidden.py"]
