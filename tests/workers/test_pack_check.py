"""Families checked through environment, collectors and verifier, without a model."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from domain.contracts import (
    ChatMessage,
    FamilyCheck,
    HiddenCheck,
    RunPackCheck,
    TaskSpec,
    Trajectory,
    VerifierSpec,
)
from packs.records import last_checks
from packs.registry import Pack, PackFamily
from packs.starter import PACK as STARTER
from tests.workers.conftest import FakeContext
from workers import pack_check
from workers.context import UnitRefused
from workers.pack_check import UnknownFamily, check_families, run_pack_check, select_families

FAMILY = PackFamily("sums", "Sums", "Add.", ("numeric",))


def task(index: int, **changes: Any) -> TaskSpec:
    values: dict[str, Any] = {
        "id": f"toy.sums.{index}",
        "family": "sums",
        "messages": (ChatMessage(role="user", content=f"{index} + 1?"),),
        "verifier": VerifierSpec(kind="numeric"),
        "reference": index + 1,
    }
    return TaskSpec(**{**values, **changes})


def toy(
    *, gold: Callable[[TaskSpec], Any] | None = None, bad: Mapping[str, Any] | None = None, **changes: Any
) -> Pack:
    def generate(family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
        return [task(seed + index, **changes) for index in range(count)]

    return Pack(
        name="toy",
        title="Toy",
        families=(FAMILY,),
        generate=generate,
        gold_answer=gold or (lambda task: str(task.reference)),
        bad_answers=lambda task: bad or {"other": "-1"},
    )


def checked(pack: Pack, *, sample: int = 2, collectors: Mapping[str, Any] | None = None) -> FamilyCheck:
    (found,) = asyncio.run(
        check_families([(pack, FAMILY)], sample=sample, seed=4, collectors=collectors or {})
    )
    return found


def test_a_sound_family_passes_with_its_good_answers_only() -> None:
    check = checked(toy())

    assert (check.gold_pass, check.noop_pass, check.bad_pass, check.errors) == (1.0, 0.0, 0.0, 0)
    assert (check.name, check.pack, check.tasks, check.seed) == ("sums", "toy", 2, 4)
    assert check.verifier_kinds == ("numeric",)
    assert check.checked_at.endswith("+00:00")
    assert check.problems == ()


def test_a_good_answer_that_fails_is_named_with_its_reason() -> None:
    check = checked(toy(gold=lambda task: "0" if task.id.endswith("4") else str(task.reference)))

    assert check.gold_pass == 0.5
    assert "toy.sums.4: the known-good answer fails" in check.problems[0]


def test_a_bad_answer_that_passes_is_named() -> None:
    check = checked(toy(bad={"copied": "5", "other": "-1"}))

    assert check.bad_pass == 0.25
    assert "toy.sums.4: the bad answer 'copied' passes." in check.problems


def test_doing_nothing_that_passes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lenient(*args: Any, **kwargs: Any) -> Trajectory:
        return Trajectory(task_id="t", family="sums", state="passed")

    monkeypatch.setattr(pack_check, "play_solution", lenient)

    check = checked(toy(), sample=1)

    assert (check.noop_pass, check.bad_pass) == (1.0, 1.0)
    assert "toy.sums.4: no answer passes." in check.problems


def test_a_good_answer_must_satisfy_the_hidden_verifier_too() -> None:
    hidden = HiddenCheck(verifier=VerifierSpec(kind="exact"), reference="never")
    check = checked(toy(hidden=hidden))

    assert check.gold_pass == 0.0
    assert "by the hidden verifier, fails" in check.problems[0]


def test_what_cannot_be_judged_is_an_error_with_its_reason_and_never_a_pass() -> None:
    python = VerifierSpec(kind="python_tests", params={"entry_point": "f"})
    reference = {"calls": [{"args": [1], "expected": 1}]}

    async def unavailable(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        return {"status": "unavailable", "calls": [], "detail": "No bwrap was found."}

    check = checked(
        toy(verifier=python, reference=reference, gold=lambda task: "def f(x): return x"),
        collectors={"python_calls": unavailable},
    )

    assert (check.gold_pass, check.noop_pass, check.bad_pass) == (None, None, None)
    assert check.errors == 6
    assert "No bwrap was found." in check.problems[0]


def test_tasks_that_cannot_be_made_are_an_error() -> None:
    def broken(family: str, **_: Any) -> list[TaskSpec]:
        raise ValueError("out of prompts")

    pack = Pack("toy", "Toy", (FAMILY,), broken, lambda task: "", lambda task: {})

    check = checked(pack)

    assert (check.tasks, check.gold_pass, check.errors) == (0, None, 1)
    assert check.problems == ("No tasks could be made: ValueError: out of prompts",)


def test_an_impossible_task_needs_no_good_answer() -> None:
    check = checked(toy(tags={"canary": True}))

    assert check.gold_pass is None
    assert (check.noop_pass, check.bad_pass, check.errors) == (0.0, 0.0, 0)


def test_no_more_solutions_are_in_flight_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0
    play = pack_check.play_solution

    async def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        try:
            return await play(*args, **kwargs)
        finally:
            running -= 1

    monkeypatch.setattr(pack_check, "play_solution", counted)

    asyncio.run(check_families([(toy(), FAMILY)] * 3, sample=4, seed=0, collectors={}, in_flight=3))

    assert most == 3


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_check, "packs", lambda: {"starter": STARTER, "toy": toy()})


def test_a_unit_records_each_family_and_tells_how_far_it_is(installed: None, ctx: FakeContext) -> None:
    result = run_pack_check(RunPackCheck(families=("sums", "tool_call"), sample=2, seed=1), ctx)

    assert {check.name for check in result.families} == {"sums", "tool_call"}
    assert last_checks(ctx.store) == {check.name: check for check in result.families}
    assert all(check.gold_pass == 1.0 and check.bad_pass == 0.0 for check in result.families)
    assert [report["done"] for report in ctx.reports] == [1, 2]


def test_a_unit_for_an_unknown_family_is_refused(installed: None, ctx: FakeContext) -> None:
    with pytest.raises(UnitRefused, match="chess"):
        run_pack_check(RunPackCheck(families=("chess",)), ctx)


def test_families_are_selected_by_name_or_all(installed: None) -> None:
    assert [family.name for _, family in select_families(["sums"])] == ["sums"]
    assert len(select_families([])) == len(STARTER.families) + 1
    with pytest.raises(UnknownFamily):
        select_families(["sums", "chess"])


def test_the_worker_knows_the_kind_of_unit() -> None:
    from workers.tasks import KINDS

    assert KINDS["pack_check"].request is RunPackCheck
