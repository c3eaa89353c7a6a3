"""Texts with something to find in them, solved here by reading every fact."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.long_context import TASKS, haystack

tasks = st.sampled_from(sorted(TASKS))


def parts(prompt: str) -> tuple[list[str], str]:
    text, _, question = prompt.rpartition("\n")
    return text.removesuffix(".").split(". "), question


def _code(sentences: list[str], question: str) -> list[int]:
    what = re.search(r"code of the (\w+ \w+)\?", question)[1]
    return [int(s.rsplit(" ", 1)[1]) for s in sentences if s.startswith(f"The code of the {what} is")]


def _bill(sentences: list[str], question: str) -> list[int]:
    what = re.search(r"left the (\w+ \w+) and", question)[1]
    (name,) = [s.rsplit(" ", 1)[1] for s in sentences if s.startswith(f"The {what} was left to")]
    (inn,) = [s.partition(" stays at the ")[2] for s in sentences if s.startswith(f"{name} stays at")]
    return [int(s.rsplit(" ", 1)[1]) for s in sentences if s.startswith(f"The bill of the {inn} is")]


def _value(sentences: list[str], question: str) -> list[int]:
    values: dict[str, int] = {}
    for sentence in sentences:
        if found := re.fullmatch(r"Variable (\w+) is set to (\d+)", sentence):
            values[found[1]] = int(found[2])
        elif found := re.fullmatch(r"Variable (\w+) takes the value of variable (\w+)", sentence):
            values[found[1]] = values[found[2]]  # read in order: what is handed on was set before
    return [values[re.search(r"variable (\w+)\?", question)[1]]]


def _sum(sentences: list[str], question: str) -> list[int]:
    place = re.search(r"brought to (\w+) in", question)[1]
    found = [re.fullmatch(rf"A cart brought (\d+) sacks of grain to {place}", s) for s in sentences]
    return [sum(int(match[1]) for match in found if match)]


SOLVERS: dict[str, Callable[[list[str], str], list[int]]] = {
    "retrieval": _code,
    "similar": _code,
    "multi_hop": _bill,
    "variables": _value,
    "aggregation": _sum,
}


def test_every_task_is_solved_here() -> None:
    assert SOLVERS.keys() == TASKS.keys()


@given(tasks, st.integers(0, 2**32), st.integers(0, 60), st.floats(0, 1))
def test_the_facts_lead_to_the_answer_and_to_no_other(
    task: str, seed: int, sentences: int, depth: float
) -> None:
    made = haystack(task, str(seed), sentences=sentences, depth=depth)

    assert SOLVERS[task](*parts(made.prompt)) == [made.answer]


@given(tasks, st.integers(0, 2**32), st.integers(0, 40))
def test_the_filler_holds_no_number(task: str, seed: int, sentences: int) -> None:
    bare, long = (haystack(task, str(seed), sentences=n, depth=0.5) for n in (0, sentences))

    assert sorted(re.findall(r"\d+", bare.prompt)) == sorted(re.findall(r"\d+", long.prompt))


@pytest.mark.parametrize(("depth", "before"), [(0.0, 0), (0.25, 5), (1.0, 20)])
def test_the_fact_stands_after_its_share_of_the_filler(depth: float, before: int) -> None:
    sentences, _ = parts(haystack("retrieval", "1", sentences=20, depth=depth).prompt)

    assert next(at for at, sentence in enumerate(sentences) if "code of" in sentence) == before


@given(tasks, st.integers(0, 2**32), st.floats(0, 1))
def test_one_seed_asks_for_the_same_however_long_the_text(task: str, seed: int, depth: float) -> None:
    short, long = (haystack(task, str(seed), sentences=n, depth=depth) for n in (2, 40))

    assert short.answer == long.answer
    assert parts(short.prompt)[1] == parts(long.prompt)[1]
    assert len(long.prompt) > len(short.prompt)


def test_seeds_draw_different_answers() -> None:
    for task in TASKS:
        assert len({haystack(task, str(n), sentences=3, depth=0.5).answer for n in range(40)}) > 20
