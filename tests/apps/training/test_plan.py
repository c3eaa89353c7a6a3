"""What is planned when, and that planning is safe to repeat."""

from apps.core.models import WorkUnit
from apps.core.permissions import Actor
from apps.core.units import unit_report, units_reap
from apps.training import services
from apps.training.models import Segment, TrainingRun, Trajectory
from tests.apps.training.conftest import FAIL, PASS, MakeRun, Workers, admit


def test_rollouts_are_ahead_of_training_by_the_staleness_limit(run: TrainingRun, workers: Workers) -> None:
    units = workers.open()

    assert [unit.kind for unit in units] == ["rollout_batch", "rollout_batch"]
    assert [segment.index for segment in run.segments.all()] == [0, 1]


def test_on_policy_runs_wait_for_each_step(make_run: MakeRun, actor: Actor, workers: Workers) -> None:
    run = make_run(config={"groups": 2, "group_size": 2, "train": {"staleness": 0}})

    services.run_start(run=run, by=actor)

    assert len(workers.open()) == 1
    workers.roll()
    assert [unit.kind for unit in workers.open()] == ["train_segment"]
    workers.train()
    assert workers.only("rollout_batch").payload["policy_version"] == 1


def test_no_segment_is_planned_beyond_the_last_step(
    make_run: MakeRun, actor: Actor, workers: Workers
) -> None:
    run = make_run(steps=1)

    services.run_start(run=run, by=actor)

    assert len(workers.open()) == 1


def test_no_rollout_is_ever_staler_than_the_limit(run: TrainingRun, workers: Workers) -> None:
    seen = []
    while workers.open():
        for unit in workers.open("rollout_batch"):
            workers.roll(unit)
        for unit in workers.open("train_segment"):
            segment = run.segments.get(index=unit.payload["segment"])
            seen.append(unit.payload["policy_version"] - segment.policy_version)
            workers.train(unit)

    assert seen == [0, 1, 1]
    assert list(run.metrics.filter(name="staleness").values_list("value", flat=True)) == [0.0, 1.0, 1.0]


def test_planning_twice_makes_one_unit(run: TrainingRun) -> None:
    before = WorkUnit.objects.count()

    services.run_plan(run=run)
    services.run_plan(run=TrainingRun.objects.get(pk=run.pk))

    assert WorkUnit.objects.count() == before


def test_a_run_continues_from_the_database_alone(run: TrainingRun, workers: Workers) -> None:
    """Planned units that were lost before they were sent are planned again, the same."""
    lost = [unit.payload for unit in workers.open()]
    WorkUnit.objects.all().delete()

    services.run_plan(run=TrainingRun.objects.get(pk=run.pk))

    assert [unit.payload for unit in workers.open()] == lost


def test_a_killed_worker_costs_an_attempt_and_no_prompt(run: TrainingRun, workers: Workers) -> None:
    """NeMo-RL PR#3599: after kill and resume every prompt is asked once, none is skipped."""
    unit = workers.send(workers.first("rollout_batch"))
    asked = unit.payload["indexes"]
    stale = workers.rollouts(unit)[1]
    WorkUnit.objects.filter(pk=unit.pk).update(sent_at="2020-01-01T00:00Z", heartbeat_at="2020-01-01T00:00Z")
    WorkUnit.objects.filter(pk=unit.pk).update(state="running")

    units_reap()
    again = workers.send(unit)

    assert again.attempt == 2
    assert again.payload["indexes"] == asked
    assert not workers.finish(again, stale, attempt=1)
    workers.roll(again)
    assert Trajectory.objects.filter(run=run, step=0).count() == 2 * len(asked)


def test_a_result_that_comes_twice_counts_once(run: TrainingRun, workers: Workers) -> None:
    unit = workers.first("rollout_batch")
    workers.roll(unit)
    known = run.segments.get(index=0).rollout_digests

    again = unit_report(
        report={
            "type": "UnitFinished",
            "unit_id": unit.pk,
            "attempt": unit.attempt,
            "result": workers.rollouts(unit)[1],
        }
    )

    assert not again
    assert run.segments.get(index=0).rollout_digests == known
    assert Trajectory.objects.filter(run=run).count() == 8


def test_a_draw_asks_every_prompt_once(run: TrainingRun, workers: Workers) -> None:
    indexes = workers.first("rollout_batch").payload["indexes"]

    assert len(set(indexes)) == len(indexes) == 4


def test_the_same_seed_draws_the_same_prompts(make_run: MakeRun, actor: Actor, workers: Workers) -> None:
    first, second, other = make_run(), make_run(), make_run(seed=2)
    for run in (first, second, other):
        services.run_start(run=run, by=actor)

    drawn = [run.segments.get(index=0).draws for run in (first, second, other)]

    assert drawn[0] == drawn[1] != drawn[2]


def test_groups_without_variance_are_refilled_with_other_tasks(run: TrainingRun, workers: Workers) -> None:
    first = workers.first("rollout_batch")
    workers.roll(first, flat=3)

    refill = WorkUnit.objects.get(key=f"rollout:{run.pk}:0:1:0")

    assert len(refill.payload["indexes"]) == 3
    assert not set(refill.payload["indexes"]) & set(first.payload["indexes"])
    assert not workers.open("train_segment")


def test_refills_end_at_the_cap(run: TrainingRun, workers: Workers) -> None:
    workers.roll(flat=4)
    workers.roll(WorkUnit.objects.get(key=f"rollout:{run.pk}:0:1:0"), flat=4)

    segment = run.segments.get(index=0)
    assert segment.state == Segment.State.TRAINING
    assert segment.groups_useful == 0
    assert len(workers.only("train_segment").payload["rollout_digests"]) == 2


def test_groups_that_the_engine_lost_are_refilled_too(run: TrainingRun, workers: Workers) -> None:
    """One reward has no other to be compared with."""
    workers.roll(rewards=(PASS, None))

    assert len(WorkUnit.objects.get(key=f"rollout:{run.pk}:0:1:0").payload["indexes"]) == 4


def test_figures_come_from_the_unselected_first_draw(run: TrainingRun, workers: Workers) -> None:
    workers.roll(flat=3)
    workers.roll(WorkUnit.objects.get(key=f"rollout:{run.pk}:0:1:0"), rewards=(PASS, FAIL))
    workers.train(reward_mean=0.9)

    series = {name: value for name, value in run.metrics.filter(step=0).values_list("name", "value")}
    assert series["pass_rate"] == series["reward_mean"] == 0.125
    assert series["reward_mean_trained"] == 0.9
    assert series["groups_useful"] == 4
    assert series["pipeline_engine_busy_share"] == 0.8
    assert series["grad_norm"] == 0.5


def test_what_could_not_be_measured_has_no_point(run: TrainingRun, workers: Workers) -> None:
    workers.roll(completion_tokens_mean=None)

    assert not run.metrics.filter(name="completion_tokens_mean").exists()


def test_the_curriculum_learns_pass_rates(run: TrainingRun, workers: Workers) -> None:
    unit = workers.first("rollout_batch")
    workers.roll(unit)

    run.refresh_from_db()
    names = {task["id"] for task in workers.store.iter_jsonl(run.dataset.tasks_digest)}
    practised = run.curriculum["tasks"]
    assert len(practised) == 4
    assert set(practised) <= names
    assert all(row == [0.5, 1] for row in practised.values())


def test_tasks_that_always_pass_are_set_aside(run: TrainingRun, workers: Workers) -> None:
    names = [task["id"] for task in workers.store.iter_jsonl(run.dataset.tasks_digest)]
    mastered = {name: 1.0 for name in names[4:]}
    workers.roll(tasks=mastered)
    workers.train()

    drawn = run.segments.get(index=2).draws[0]

    assert len(set(drawn) & set(range(4))) >= 3


def test_a_repeated_artifact_is_trained_on_once_and_stalls_nothing(
    run: TrainingRun, workers: Workers
) -> None:
    """The trainer refuses rollouts it has had; the planner never offers them twice."""
    digest = workers.roll()
    second = WorkUnit.objects.get(key=f"rollout:{run.pk}:1:0:0")
    workers.finish(second, workers.rollouts(second)[1] | {"trajectories_digest": digest})
    refill = WorkUnit.objects.get(key=f"rollout:{run.pk}:1:1:0")
    workers.finish(refill, workers.rollouts(refill)[1] | {"trajectories_digest": digest})
    workers.train()

    assert run.segments.get(index=1).state == Segment.State.TRAINING
    assert workers.only("train_segment").payload["rollout_digests"] == []


def test_seeds_differ_between_steps_and_rounds(run: TrainingRun, workers: Workers) -> None:
    workers.roll(flat=4)

    seeds = list(WorkUnit.objects.filter(kind="rollout_batch").values_list("payload__seed", flat=True))
    assert len(set(seeds)) == len(seeds) == 3


def test_rollouts_ask_for_the_newest_adapter_by_a_name_never_used_before(
    run: TrainingRun, workers: Workers
) -> None:
    workers.roll()
    digest = workers.train()

    target = WorkUnit.objects.get(key=f"rollout:{run.pk}:2:0:0").payload["target"]

    assert target["model"] == f"{run.slug}-v1-a1-{digest[:8]}"
    assert target["adapter_digest"] == digest


def test_adapters_that_nothing_needs_are_retired_once(
    make_run: MakeRun, actor: Actor, workers: Workers
) -> None:
    run = make_run(steps=5)
    services.run_start(run=run, by=actor)
    retired = []
    while units := workers.open():
        for unit in units:
            retired += unit.payload.get("retire", []) if unit.kind == "rollout_batch" else []
            (workers.roll if unit.kind == "rollout_batch" else workers.train)(unit)

    run.refresh_from_db()
    assert [name.split("-v")[1].split("-")[0] for name in retired] == ["1", "2"]
    assert run.adapter_name not in retired


def test_a_verifier_that_loses_its_admission_holds_the_run(run: TrainingRun, workers: Workers) -> None:
    """A confirmed exploit must stop what trains on the verifier that it fools."""
    admit(run.dataset.assets.first().verifier, "unchecked")

    workers.roll()

    run.refresh_from_db()
    assert run.state == TrainingRun.State.PAUSED
    assert "invoice_fields v1" in run.error
    assert not workers.open("train_segment")
