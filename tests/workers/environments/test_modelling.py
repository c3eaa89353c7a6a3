"""Script, measurements, constraints, another script."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.workers.environments.conftest import call, task_in
from workers.environments import Answer, EnvironmentBroken, TaskRefused
from workers.environments.modelling import Modelling
from workers.environments.turns import Turns
from workers.sandbox.protocol import ExecResult

BOX = {
    "status": "ok",
    "metrics": {
        "watertight": True,
        "solid": True,
        "volume": 1000.0,
        "area": 600.0,
        "low": [0.0, 0.0, 0.0],
        "high": [10.0, 10.0, 10.0],
        "genus": 0,
        "bodies": 1,
    },
}


async def test_a_script_is_answered_with_measurements_and_broken_constraints() -> None:
    environment = await _started(BOX, constraints={"volume": 2000, "genus": 0})

    await environment.act(Answer(call("run_script", code="part = box(10, 10, 10)")))

    (message,) = environment.observe()
    assert "volume: 1000" in str(message.content)
    assert "The volume is 1000 mm³, not 2000." in str(message.content)


async def test_constraints_that_hold_are_said_to_hold() -> None:
    environment = await _started(BOX, constraints={"volume": 1000, "extents": [10, 10, 10]})

    await environment.act(Answer(call("run_script", code="part = box(10, 10, 10)")))

    (message,) = environment.observe()
    assert str(message.content).endswith("All visible constraints hold.")


async def test_a_script_that_fails_is_answered_with_its_error() -> None:
    environment = await _started({"status": "error", "detail": "NameError: name 'bx' (line 1)"})

    over = await environment.act(Answer(call("run_script", code="part = bx(1)")))

    (message,) = environment.observe()
    step = environment.sandbox_log()
    assert not over
    assert message.content == "[the script failed]\nNameError: name 'bx' (line 1)"
    assert step is not None
    assert step.status == "nonzero"


async def test_each_script_is_a_change_of_the_one_before() -> None:
    environment = await _started(BOX)
    await environment.act(Answer(call("run_script", code="part = box(1, 1, 1)\n")))

    await environment.act(Answer(call("run_script", code="part = box(2, 1, 1)\n")))

    step = environment.sandbox_log()
    assert step is not None
    assert [change.change for change in step.changes] == ["modified"]
    assert "+part = box(2, 1, 1)" in step.changes[0].diff


@pytest.mark.parametrize(("arguments", "answer"), [({}, "part = 1"), ({"code": "part = 2"}, "part = 2")])
async def test_the_submitted_script_is_the_answer(arguments: dict[str, str], answer: str) -> None:
    environment = await _started(BOX)
    await environment.act(Answer(call("run_script", code="part = 1")))

    over = await environment.act(Answer(call("submit", **arguments)))

    assert over
    assert environment.answer_text() == answer


async def test_a_script_that_only_ran_is_no_answer() -> None:
    environment = await _started(BOX, max_turns=1)

    over = await environment.act(Answer(call("run_script", code="part = 1")))

    assert over
    assert environment.answer_text() == ""


@pytest.mark.parametrize("status", ["infra_error", "unavailable"])
async def test_no_sandbox_is_the_hosts_doing(status: str) -> None:
    environment = await _started({"status": status, "detail": "no namespaces"})

    with pytest.raises(EnvironmentBroken, match="no namespaces"):
        await environment.act(Answer(call("run_script", code="part = 1")))


async def test_constraints_that_make_no_sense_are_refused() -> None:
    with pytest.raises(TaskRefused, match="not sound"):
        await _started(BOX, constraints={"weight": 3})


async def _started(report: Mapping[str, Any], **params: Any) -> Turns:
    async def inspect(script: str) -> tuple[ExecResult, Mapping[str, Any]]:
        return ExecResult("ok", exit_code=0, wall_s=0.1), report

    environment = Turns(Modelling(inspect))
    await environment.reset(task_in("modelling", **params))
    environment.observe()
    return environment
