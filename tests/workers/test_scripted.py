"""Written solutions played through their environment."""

import pytest

from domain.contracts import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from tests.workers.environments.conftest import call, shop, task_in
from workers.scripted import play_solution

EXACT = TaskSpec(
    id="t",
    family="f",
    messages=(ChatMessage(role="user", content="6 * 7?"),),
    verifier=VerifierSpec(kind="exact"),
    reference="42",
)
TOOLS = task_in("tools", state=shop()).model_copy(update={"reference": "Done."})


@pytest.mark.parametrize(("answer", "state"), [("42", "passed"), ("41", "failed"), ("", "failed")])
async def test_one_answer_to_one_question_is_judged(answer: str, state: str) -> None:
    assert (await play_solution(EXACT, answer, collectors={})).state == state


async def test_turns_are_played_in_the_tasks_environment() -> None:
    done = await play_solution(TOOLS, (call("get_order", order="O-1"), "Done."), collectors={})

    assert done.state == "passed"
    assert [step.sandbox.status for step in done.steps if step.sandbox] == ["ok", "ok"]
    assert done.steps[1].observation.startswith("user: Result of the tool:\n{")


async def test_a_text_is_the_final_answer_of_an_environment_with_turns() -> None:
    assert (await play_solution(TOOLS, "Done.", collectors={})).state == "passed"


async def test_a_script_that_ends_early_is_judged_as_it_stands() -> None:
    done = await play_solution(TOOLS, (call("get_order", order="O-1"),), collectors={})

    assert done.state == "failed"
    assert done.reward == 0.0


async def test_no_turns_are_a_no_op() -> None:
    done = await play_solution(TOOLS, (), collectors={})

    assert (done.state, done.reward) == ("failed", 0.0)


async def test_the_hidden_verifier_sees_every_scripted_pass() -> None:
    hidden = HiddenCheck(verifier=VerifierSpec(kind="exact"), reference="43")
    done = await play_solution(EXACT.model_copy(update={"hidden": hidden}), "42", collectors={})

    assert done.state == "passed"
    assert done.hidden is not None
    assert done.hidden.state == "failed"
    assert [flag.detector for flag in done.flags] == ["hidden_verifier"]
