"""The phases against a small world: what they make, and that they make it once."""

import pytest

from apps.loop.turn import collecting, improving, plan, releasing
from apps.loop.turn.context import Turn, TurnFailed
from clients.flywheel import ApiError
from tests.apps.loop.fake_api import FakeApi


@pytest.fixture
def prepared(turn: Turn) -> Turn:
    assert collecting.prepare(turn)
    return turn


@pytest.fixture
def collected(prepared: Turn, fully) -> Turn:
    for phase in (collecting.traffic, collecting.anonymize, collecting.label, collecting.assets):
        fully(phase)
    return prepared


@pytest.fixture
def trained(collected: Turn, fake: FakeApi) -> Turn:
    improving.train(collected)
    fake.versions.append({"id": 2, "number": "1.1", "state": "registered", "adapter_digest": "d" * 64})
    fake.training[0].update(state="done", steps_done=40, pass_rate=0.7, version_id=2)
    assert improving.train(collected)
    return collected


def _forget(turn: Turn, *keys: str) -> None:
    """As if the worker had died before the machine stored what the phase remembered."""
    for key in keys:
        del turn.state[key]


def test_prepare_remembers_what_serves_and_makes_two_suites(prepared: Turn, fake: FakeApi):
    assert prepared.state["base"] == {"id": 1, "number": "1.0"}
    assert [suite["name"] for suite in fake.suites] == [
        f"Held out, turn {prepared.row.pk}", f"Smoke, turn {prepared.row.pk}",
    ]  # fmt: skip


def test_prepare_repeated_makes_no_second_suite(prepared: Turn, fake: FakeApi):
    collecting.prepare(prepared)

    assert len(fake.suites) == 2


@pytest.mark.parametrize(("admission", "healthy"), [("pending", True), ("admitted", False)])
def test_prepare_waits_for_gauntlet_and_engines(turn: Turn, fake: FakeApi, admission: str, healthy: bool):
    fake.admission, fake.healthy = admission, healthy

    assert collecting.prepare(turn) is False
    assert collecting.prepare(turn) is False
    assert turn.lines == ["Waiting for the engines and for the verifier's gauntlet."]


def test_prepare_refuses_a_verifier_that_the_gauntlet_refused(turn: Turn, fake: FakeApi):
    fake.admission = "refused"

    with pytest.raises(TurnFailed, match="gauntlet refused"):
        collecting.prepare(turn)


def test_prepare_needs_a_version_in_service(turn: Turn, fake: FakeApi):
    fake.versions.clear()

    with pytest.raises(TurnFailed, match="No version is in service"):
        collecting.prepare(turn)


def test_traffic_counts_wrong_answers_and_starts_the_baseline(prepared: Turn, fake: FakeApi, fully):
    fully(collecting.traffic)

    assert prepared.state["traffic"] == {"sent": 20, "wrong": 10, "unanswered": 0}
    assert len(fake.captures) == 10
    assert [run["version_id"] for run in fake.runs] == [1]


def test_traffic_gives_up_where_nothing_fails(prepared: Turn, fake: FakeApi):
    fake.wrong_every = 19

    with pytest.raises(TurnFailed, match="Only 2 answers were wrong"):
        collecting.traffic(prepared)


def test_anonymize_waits_for_every_failure(prepared: Turn, fake: FakeApi, fully):
    fully(collecting.traffic)
    fake.captures[0]["state"] = "raw"

    assert collecting.anonymize(prepared) is False
    fake.captures[0]["state"] = "refused"
    assert collecting.anonymize(prepared) is True
    assert prepared.lines[-1].startswith("9 failures anonymized")
    assert prepared.lines[-1].endswith("1 could not be.")


def test_failures_of_others_are_left_alone(prepared: Turn, fake: FakeApi, fully):
    fully(collecting.traffic)
    fake.capture("a-real-users-request")
    theirs = fake.cases[-1]

    for phase in (collecting.anonymize, collecting.label, collecting.assets):
        fully(phase)

    assert theirs["state"] == "new"
    assert prepared.state["assets"] == {"made": 10, "refused": 0}


def test_label_waits_for_cases_that_are_being_opened(prepared: Turn, fake: FakeApi, fully):
    fully(collecting.traffic)
    fully(collecting.anonymize)
    late = fake.cases.pop()

    assert [collecting.label(prepared) for _ in range(3)] == [False, False, False]
    fake.cases.append(late)
    fully(collecting.label)
    assert {case["state"] for case in fake.cases} == {"labelled"}


def test_a_person_who_works_on_a_case_of_the_turn_delays_it_and_does_not_end_it(
    prepared: Turn, fake: FakeApi, fully
):
    fully(collecting.traffic)
    fully(collecting.anonymize)
    fake.held_case = fake.cases[0]["id"]

    assert [collecting.label(prepared) for _ in range(3)] == [False, False, False]
    assert sum("person is working" in line for line in prepared.lines) == 1
    fake.held_case = 0
    fully(collecting.label)
    assert {case["state"] for case in fake.cases} == {"labelled"}


def test_a_case_that_is_refused_as_task_is_counted_and_said_once(prepared: Turn, fake: FakeApi, fully):
    for phase in (collecting.traffic, collecting.anonymize, collecting.label):
        fully(phase)
    fake.asset_error = ApiError(400, "correction_fails", "The correction does not pass the verifier.")

    fully(collecting.assets)

    assert prepared.state["assets"] == {"made": 9, "refused": 1}
    assert sum("does not pass" in line for line in prepared.lines) == 1


def test_a_chunk_of_tasks_repeated_after_a_death_counts_the_same(collected: Turn, fake: FakeApi, fully):
    before = dict(collected.state["assets"])
    _forget(collected, "assets", "dataset")

    fully(collecting.assets)

    assert collected.state["assets"] == before


def test_train_starts_one_run_even_if_the_worker_forgot_it(collected: Turn, fake: FakeApi):
    improving.train(collected)
    _forget(collected, "training_run")

    improving.train(collected)

    assert len(fake.training) == 1


def test_train_starts_a_run_that_stayed_a_draft(collected: Turn, fake: FakeApi):
    improving.train(collected)
    fake.training[0]["state"] = "draft"

    improving.train(collected)

    assert fake.training[0]["state"] == "running"


def test_train_tells_each_tenth_once(collected: Turn, fake: FakeApi):
    improving.train(collected)
    fake.training[0].update(steps_done=8, pass_rate=0.4)

    improving.train(collected)
    improving.train(collected)

    assert collected.lines.count("Step 8 of 40, 40 % of its samples pass.") == 1


def test_a_failed_training_run_ends_the_turn_with_its_reason(collected: Turn, fake: FakeApi):
    improving.train(collected)
    fake.training[0].update(state="failed", error="A segment failed five times.")

    with pytest.raises(TurnFailed, match=r"Training ended as failed\. A segment failed five times\."):
        improving.train(collected)


def test_evaluate_compares_when_both_runs_are_done(trained: Turn, fake: FakeApi):
    assert improving.evaluate(trained) is False
    for run in fake.runs:
        run["state"] = "done"

    assert improving.evaluate(trained) is True
    assert trained.state["comparison"]["low"] == 0.1
    assert [run["version_id"] for run in fake.runs] == [1, 2]


def test_evaluate_repeated_after_a_death_starts_no_third_run(trained: Turn, fake: FakeApi):
    improving.evaluate(trained)
    _forget(trained, "base_run", "trained_run")

    improving.evaluate(trained)

    assert len(fake.runs) == 2


def test_a_cancelled_evaluation_ends_the_turn(trained: Turn, fake: FakeApi):
    improving.evaluate(trained)
    fake.runs[-1]["state"] = "cancelled"
    fake.runs[0]["state"] = "done"

    with pytest.raises(TurnFailed, match="An evaluation did not finish"):
        improving.evaluate(trained)


def test_release_sends_traffic_until_the_gate_has_decided(trained: Turn, fake: FakeApi):
    assert releasing.release(trained) is False
    fake.releases[0].update(state="promoted", reasons=["Enough units."], weight=0.0)

    assert releasing.release(trained) is True
    assert trained.state["release_sent"] == plan.RELEASE_CAP
    assert trained.lines[-2:] == ["10 % of users on the canary.", "Version 1.1: promoted. Enough units."]


def test_release_repeated_after_a_death_finds_the_release(trained: Turn, fake: FakeApi):
    releasing.release(trained)
    _forget(trained, "release", "release_sent")

    releasing.release(trained)

    assert len(fake.releases) == 1


@pytest.mark.parametrize("held", ["warming", "paused"])
def test_no_traffic_is_sent_while_a_release_is_held(trained: Turn, fake: FakeApi, held: str):
    releasing.release(trained)
    fake.releases[0][held] = True
    asked = len(fake.asked)

    assert releasing.release(trained) is False
    assert len(fake.asked) == asked


def test_a_release_that_never_decides_is_given_up(trained: Turn, fake: FakeApi):
    releasing.release(trained)

    with pytest.raises(TurnFailed, match=r"still holds after 30 requests\. No units yet\."):
        releasing.release(trained)


def test_the_gateway_is_asked_until_it_serves_what_was_promoted(trained: Turn, fake: FakeApi):
    releasing.release(trained)
    fake.releases[0]["state"] = "promoted"

    assert releasing.in_service(trained) is False
    fake.served = "1.1"
    assert releasing.in_service(trained) is True
    assert trained.state["in_service_after_release"] == {"version": "1.1", "edition": "standard"}


def test_what_the_gateway_keeps_saying_is_taken_as_it_is(trained: Turn, fake: FakeApi, fully):
    releasing.release(trained)
    fake.releases[0]["state"] = "promoted"

    fully(releasing.in_service)

    assert trained.state["in_service_after_release"]["version"] == "1.0"


def test_damage_registers_one_copy_and_measures_it(trained: Turn, fake: FakeApi, monkeypatch):
    monkeypatch.setattr(releasing, "damaged_adapter", lambda digest, seed: "e" * 64)
    releasing.damage(trained)
    _forget(trained, "damaged", "damaged_run")
    releasing.damage(trained)
    fake.runs[-1]["state"] = "done"

    assert releasing.damage(trained) is True
    assert [row["number"] for row in fake.versions] == ["1.0", "1.1", "1.2"]
    assert [run["version_id"] for run in fake.runs] == [1, 3]


def test_the_drill_ends_with_what_serves(trained: Turn, fake: FakeApi):
    trained.state.update(damaged={"id": 3, "number": "1.2"})
    trained.state["in_service_after_release"] = {"version": "1.1", "edition": "standard"}
    fake.served = "1.1"
    assert releasing.drill(trained) is False
    fake.releases[-1].update(state="rolled_back", units_at_end=31)

    assert releasing.drill(trained) is True
    assert trained.lines[-1] == "Version 1.2: rolled back after 31 units."
    assert trained.state["in_service"] == {"version": "1.1", "edition": "standard"}


def test_a_drill_that_was_rolled_back_waits_for_nobody(trained: Turn, fake: FakeApi):
    trained.state.update(damaged={"id": 3, "number": "1.2"})
    trained.state["in_service_after_release"] = {"version": "1.1", "edition": "standard"}
    fake.served = "1.1"
    releasing.drill(trained)
    fake.releases[-1].update(state="rolled_back", units_at_end=31)

    releasing.drill(trained)

    assert fake.releases[-1]["acknowledged"]


def test_no_question_is_asked_twice_nor_held_out(small: None):
    asked = [*plan.watched(7), *plan.flowing(7, "release"), *plan.flowing(7, "drill")]

    ids = [task.id for task in [*asked, *plan.held_out(7)]]

    assert len(set(ids)) == len(ids) == 20 + 6 + 2 * 30


def test_another_seed_asks_other_questions(small: None):
    questions = {str(task.messages[-1].content) for task in plan.watched(7)}
    others = {str(task.messages[-1].content) for task in plan.watched(8)}

    assert len(questions & others) < 3
