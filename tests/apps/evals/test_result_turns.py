"""What an agent did, on the page of its result."""

import pytest

from apps.evals.models import Result
from apps.evals.result_turns import turns_of
from domain.contracts import FileChange, SandboxStep, Step
from tests.apps.evals.conftest import text

pytestmark = pytest.mark.django_db

CHANGE = FileChange(path="orders.json", change="modified", diff="+ refunded")
REFUND = SandboxStep(command="refund_order O-1", stdout="20 refunded", changes=(CHANGE,))
STEPS = [
    Step(observation="Refund O-1.", action="refund_order(O-1)", sandbox=REFUND),
    Step(observation="20 refunded", action="Done.", sandbox=SandboxStep(command="final answer")),
]


@pytest.fixture
def agent_result(start, finish, store) -> Result:
    digest = store.put_jsonl([[], [step.model_dump(mode="json") for step in STEPS]])
    run = start()
    finish(run, turns_digest=digest, turns_line=1)
    return run.results.first()


def test_the_page_shows_every_turn_with_what_it_did_and_changed(page, agent_result):
    shown = text(page.get(agent_result.get_absolute_url()))

    assert "Turn 1" in shown
    assert "refund_order O-1" in shown
    assert "orders.json" in shown
    assert "Turn 2" in shown


def test_the_turns_are_read_from_the_line_of_the_result(agent_result):
    turns = turns_of(agent_result)

    assert [turn.said for turn in turns] == ["refund_order(O-1)", "Done."]
    assert [turn.seen for turn in turns] == ["", "20 refunded"]


def test_turns_that_are_gone_leave_the_answer(page, agent_result):
    Result.objects.filter(pk=agent_result.pk).update(turns_digest="0" * 64)
    agent_result.refresh_from_db()

    assert turns_of(agent_result) == []
    assert page.get(agent_result.get_absolute_url()).status_code == 200


def test_the_api_gives_the_turns_of_a_result(api, agent_result):
    url = f"/api/v1/runs/{agent_result.run_id}/results/{agent_result.pk}/turns"

    answer = api.get(url).json()

    assert [(turn["number"], turn["said"]) for turn in answer] == [(1, "refund_order(O-1)"), (2, "Done.")]
    assert answer[0]["did"]["changes"][0]["path"] == "orders.json"
    assert api.get(f"/api/v1/runs/{agent_result.run_id}/results/999999/turns").status_code == 404
