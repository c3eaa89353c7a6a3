"""What every seeded pack must keep, for its test file to ask for by family."""

from domain.contracts.tasks import TaskSpec
from domain.verifiers import check_spec, verify
from packs.registry import Pack, PackFamily


def family_of(pack: Pack, name: str) -> PackFamily:
    return next(family for family in pack.families if family.name == name)


def assert_tasks_are_sound(pack: Pack, family: str, *, count: int) -> None:
    """Distinct, reproducible, of the family's environment and verifier, with a cluster."""
    entry, tasks = family_of(pack, family), pack.generate(family, seed=2, count=count)
    assert tasks == pack.generate(family, seed=2, count=count)
    assert len({task.id for task in tasks}) == len({str(task.messages) for task in tasks}) == count
    assert pack.generate(family, seed=3, count=1) != tasks[:1]
    for task in tasks:
        assert task.source
        assert task.environment == entry.environment
        assert task.verifier.kind in entry.verifier_kinds
        check_spec(task.verifier, task.reference)
        if task.hidden is not None:
            check_spec(task.hidden.verifier, task.hidden.reference)


def assert_answers_are_judged_right(pack: Pack, family: str, *, count: int) -> None:
    """Single turn: gold passes, nothing and every known mistake fail, at less credit than gold."""
    for task in pack.generate(family, seed=6, count=count):
        gold = pack.gold_answer(task)
        assert isinstance(gold, str)
        assert verify(task, gold, {}).state == "passed", (task.id, gold, verify(task, gold, {}).reasons)
        assert verify(task, "", {}).score == 0.0, task.id
        bad = pack.bad_answers(task)
        assert len(bad) >= 3, task.id
        for name, answer in bad.items():
            assert isinstance(answer, str)
            verdict = verify(task, answer, {})
            assert verdict.state == "failed", (task.id, name, answer)
            assert verdict.reasons, (task.id, name)


def renamed(task: TaskSpec, id: str) -> TaskSpec:
    return task.model_copy(update={"id": id})
