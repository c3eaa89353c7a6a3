"""Answers scored for real: reasoning-gym in a sandbox makes the entry again and scores it."""

import asyncio

import pytest

from domain.contracts import TaskSpec, Verdict
from domain.verifiers import verify
from packs.reasoning import PACK
from workers.collect import scorer
from workers.collect.scorer import collect_scorer
from workers.sandbox.bubblewrap import BubblewrapBackend


def judged(backend: BubblewrapBackend, task: TaskSpec, answer: str) -> Verdict:
    return verify(task, answer, {"scorer": asyncio.run(collect_scorer(backend, task, answer))})


def task_of(dataset: str, seed: int = 1) -> TaskSpec:
    return PACK.generate(f"rg_{dataset}", seed=seed, count=1)[0]


def gold_of(task: TaskSpec) -> str:
    answer = PACK.gold_answer(task)
    assert isinstance(answer, str)
    return answer


# One with a unique answer, one with many, our own solvers, and two whose entries depend on the hash seed.
@pytest.mark.parametrize(
    "dataset",
    [
        "chain_sum",
        "countdown",
        "graph_color",
        "rubiks_cube",
        "isomorphic_strings",
        "polynomial_multiplication",
    ],
)
def test_known_answers_pass_and_wrong_ones_fail(backend: BubblewrapBackend, dataset: str) -> None:
    task = task_of(dataset)

    assert judged(backend, task, gold_of(task)).state == "passed"
    assert judged(backend, task, f"So it is <answer>{gold_of(task)}</answer>.").state == "passed"
    for mistake, answer in PACK.bad_answers(task).items():
        assert isinstance(answer, str)
        assert judged(backend, task, answer).state == "failed", mistake


def test_another_right_answer_than_the_known_one_passes(backend: BubblewrapBackend) -> None:
    task = task_of("graph_color")
    swapped = gold_of(task).replace(": 1", ": X").replace(": 2", ": 1").replace(": X", ": 2")

    assert swapped != gold_of(task)
    assert judged(backend, task, swapped).state == "passed"


@pytest.mark.parametrize(
    ("dataset", "cheat"),
    [
        ("polynomial_multiplication", "exec('import os; os._exit(0)')"),
        ("polynomial_multiplication", "().__class__.__base__.__subclasses__()"),
        ("simple_integration", "Integral(x**2, x)"),
        ("simple_integration", "integrate(x, x)"),
        ("intermediate_integration", "__import__('os').system('true')"),
        ("countdown", "[c for c in ().__class__.__mro__]"),
        ("puzzle24", "__import__('sys').exit(0)"),
        ("binary_matrix", "__import__('os')._exit(0)"),
        ("n_queens", "exec('score = 1.0')"),
        ("number_sorting", "[NaN, NaN, NaN, NaN]"),
        ("complex_arithmetic", "nan"),
        ("complex_arithmetic", "nan+nanj"),
        ("game_of_life_halting", "anything"),
        ("coin_flip", "0"),
        ("pool_matrix", "nan nan\nnan nan"),
    ],
)
def test_what_would_run_or_fool_the_scorer_is_not_scored(
    backend: BubblewrapBackend, dataset: str, cheat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*args: object, **kwargs: object) -> None:
        raise AssertionError("the answer reached a sandbox")

    monkeypatch.setattr(backend, "run", run)

    assert judged(backend, task_of(dataset), cheat).state == "failed"


def test_four_other_numbers_do_not_make_24(backend: BubblewrapBackend) -> None:
    task = next(
        t for t in PACK.generate("rg_puzzle24", seed=2, count=9) if "6, 4, 1, 1" not in str(t.messages)
    )

    verdict = judged(backend, task, "6*4*1*1")

    assert verdict.state == "failed"
    assert "Other numbers" in verdict.reasons[0]


def test_moves_that_are_blocked_are_no_solution(backend: BubblewrapBackend) -> None:
    task = task_of("rush_hour")
    first = gold_of(task).split()[0]
    opposite = first.replace("+", "!").replace("-", "+").replace("!", "-")

    verdict = judged(backend, task, f"A+5 {gold_of(task)} {opposite}")

    assert verdict.state == "failed"
    assert "blocked" in verdict.reasons[0] or "gives" in verdict.reasons[0]


def test_a_premise_said_again_is_no_conclusion(backend: BubblewrapBackend) -> None:
    tasks = PACK.generate("rg_propositional_logic", seed=1, count=12)
    task, premise = next(
        (task, line.partition(". ")[2])
        for task in tasks
        for line in str(task.messages[0].content).splitlines()
        if line[:1] in ".123456789" and "(" in line and sum(letter.isupper() for letter in line) == 2
    )

    verdict = judged(backend, task, premise)

    assert verdict.state == "failed"
    assert "single statement" in verdict.reasons[0] or "gives 0.25" in verdict.reasons[0]


def test_an_entry_that_comes_out_otherwise_is_no_word_about_the_answer(backend: BubblewrapBackend) -> None:
    task = task_of("chain_sum")
    other = task.model_copy(update={"reference": {**task.reference, "entry": "0" * 16}})

    report = asyncio.run(collect_scorer(backend, other, gold_of(task)))

    assert report["status"] == "infra_error"
    assert verify(other, gold_of(task), {"scorer": report}).state == "unscored"


def test_a_known_answer_never_enters_the_sandbox(
    backend: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    question = scorer._Question

    def recorded(request: dict[str, object]) -> object:
        asked.append(request)
        return question(request)

    monkeypatch.setattr(scorer, "_Question", recorded)
    task = task_of("chain_sum")

    judged(backend, task, "12345")

    (request,) = asked
    assert isinstance(request, dict)
    assert set(request) == {"dataset", "seed", "config", "entry", "answer"}
    assert request["answer"] == "12345"
