"""The starter families: sound tasks, gold answers that pass, bad answers that fail."""

from typing import Any

import pytest

from domain.contracts.tasks import ChatMessage, TaskSpec, VerifierSpec
from domain.verifiers.registry import check_spec, verify
from packs.starter.draft import FIRST_NAMES, LAST_NAMES
from packs.starter.tasks import bad_answers, families, generate, gold_answer, is_reserved

NAMES = [family.name for family in families()]
PURE = [name for name in NAMES if name != "python_functions"]


def _calls(task: TaskSpec, answer: str) -> list[bool]:
    """Whether each call of a task gives what it should; the pack's own short functions only."""
    space: dict[str, Any] = {}
    try:
        exec(answer, space)
        function = space[task.verifier.params["entry_point"]]
        return [
            function(*call["args"], **call["kwargs"]) == call["expected"] for call in task.reference["calls"]
        ]
    except (SyntaxError, TypeError):
        return [False]


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_a_function_of_seed(family: str) -> None:
    assert generate(family, seed=3, count=20) == generate(family, seed=3, count=20)
    assert generate(family, seed=3, count=20) != generate(family, seed=4, count=20)


@pytest.mark.parametrize("family", NAMES)
def test_a_longer_list_begins_with_the_shorter_one(family: str) -> None:
    assert generate(family, seed=3, count=30)[:10] == generate(family, seed=3, count=10)


@pytest.mark.parametrize("family", NAMES)
def test_ids_and_prompts_are_distinct(family: str) -> None:
    tasks = generate(family, seed=1, count=300)

    assert len({task.id for task in tasks}) == 300
    assert len({(task.messages, str(task.tools)) for task in tasks}) == 300


@pytest.mark.parametrize("family", NAMES)
def test_a_task_names_its_cluster_and_a_sound_verifier(family: str) -> None:
    entry = next(entry for entry in families() if entry.name == family)

    for task in generate(family, seed=2, count=100):
        assert task.source
        assert task.verifier.kind in entry.verifier_kinds
        check_spec(task.verifier, task.reference)


@pytest.mark.parametrize("family", PURE)
def test_gold_answers_pass_and_bad_answers_fail(family: str) -> None:
    for task in generate(family, seed=6, count=200):
        assert verify(task, gold_answer(task), {}).state == "passed", (task, gold_answer(task))
        for name, answer in bad_answers(task).items():
            assert verify(task, answer, {}).state == "failed", (task, name, answer)


def test_gold_functions_pass_their_calls_and_bad_ones_do_not() -> None:
    for task in generate("python_functions", seed=6, count=200):
        assert all(_calls(task, gold_answer(task))), task
        for name, answer in bad_answers(task).items():
            assert not all(_calls(task, answer)), (task, name, answer)


def test_no_field_to_extract_is_a_person_or_an_address() -> None:
    names = {*FIRST_NAMES, *LAST_NAMES}

    for task in generate("invoice_fields", seed=9, count=300):
        values = [str(value) for value in task.reference.values()]
        assert not any("@" in value or names & set(value.split()) for value in values)


def test_reserved_tasks_are_one_in_eight_and_can_be_asked_for() -> None:
    tasks = generate("invoice_fields", seed=1, count=800)
    reserved = generate("invoice_fields", seed=1, count=50, reserved=True)
    open_ones = generate("invoice_fields", seed=1, count=50, reserved=False)

    assert 70 <= sum(map(is_reserved, tasks)) <= 130
    assert all(map(is_reserved, reserved))
    assert not any(map(is_reserved, open_ones))


def test_an_unknown_family_is_an_error() -> None:
    with pytest.raises(KeyError):
        generate("poetry", seed=1, count=1)


@pytest.mark.parametrize(
    "id", ["case-1", "starter.poetry.1.1", "other.tool_call.1.1", "starter.tool_call.x.1"]
)
def test_answers_exist_only_for_tasks_of_this_pack(id: str) -> None:
    message = ChatMessage(role="user", content="hi")
    task = TaskSpec(id=id, family="poetry", messages=(message,), verifier=VerifierSpec(kind="exact"))

    with pytest.raises(ValueError, match="not from the starter pack"):
        gold_answer(task)
