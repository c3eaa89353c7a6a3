"""The life of a run: created, started, paused, resumed, failed, cancelled, finished."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.lineage import lineage_strip
from apps.core.models import AuditEvent, Event, WorkUnit
from apps.core.permissions import Actor
from apps.core.units import unit_cancel, unit_retry
from apps.feedback import services as feedback
from apps.feedback.models import Family
from apps.training import services
from apps.training.models import Segment, TrainingRun
from apps.versions.models import ModelVersion
from domain.contracts.trajectory_table import RolloutInfo
from tests.apps.training.conftest import MakeRun, Workers, admit, trajectory
from workers.trajectory_file import trajectory_file


def finish(run: TrainingRun, workers: Workers, *, skipped: str = "") -> None:
    while units := workers.open():
        for unit in units:
            if unit.kind == "rollout_batch":
                workers.roll(unit)
            else:
                workers.train(unit, skipped=skipped)
    run.refresh_from_db()


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"group_size": 1}, "group_size"),
        ({"train": {"lr": 0}}, "train.lr"),
        ({"train": {"temperature": 3}}, "train.temperature"),
        ({"train": {"lora_targets": ["lm_head"]}}, "train.lora_targets"),
        ({"speed": 11}, "speed"),
        ({"train": {"lr": float("nan")}}, "train.lr"),
    ],
)
def test_a_bad_configuration_names_its_field(make_run: MakeRun, config: dict, named: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(Refused, match=f"Configuration, {named}:"):
        make_run(config=config)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"steps": 0}, "steps_invalid"),
        ({"seed": -1}, "seed_invalid"),
        ({"seed": 2**63}, "seed_invalid"),
        ({"name": " "}, "name_missing"),
    ],
)
def test_what_makes_no_run_is_refused(make_run: MakeRun, changes: dict, code: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(Refused) as refused:
        make_run(**changes)

    assert refused.value.code == code
    assert not TrainingRun.objects.exists()


def test_held_out_tasks_may_not_train(
    make_run: MakeRun, family: Family, actor: Actor, parent: ModelVersion
) -> None:
    held_out = feedback.dataset_create(
        project=family.project, name="held", split="held_out", families=[family.name], by=actor
    )

    with pytest.raises(Refused) as refused:
        services.run_create(project=family.project, name="x", dataset=held_out, parent=parent, by=actor)

    assert refused.value.code == "dataset_held_out"


def test_a_draft_waits(make_run: MakeRun) -> None:
    run = make_run()

    assert run.state == TrainingRun.State.DRAFT
    assert run.slug == f"invoices-{run.pk}"
    assert not WorkUnit.objects.exists()
    assert AuditEvent.objects.filter(action="training_run.create").exists()


def test_starting_needs_admitted_verifiers(make_run: MakeRun, family: Family, actor: Actor) -> None:
    run = make_run()
    admit(family.verifier, "refused")

    with pytest.raises(Conflict, match="invoice_fields v1") as refused:
        services.run_start(run=run, by=actor)

    assert refused.value.code == "verifier_not_admitted"
    assert refused.value.detail == {"verifiers": ["invoice_fields v1"]}
    run.refresh_from_db()
    assert run.state == TrainingRun.State.DRAFT


def test_starting_needs_a_way_to_verify(make_run: MakeRun, family: Family, actor: Actor) -> None:
    run = make_run()
    Family.objects.update(unavailable="No sandbox can be had here.")

    with pytest.raises(Conflict, match="No sandbox can be had here"):
        services.run_start(run=run, by=actor)


def test_a_run_starts_once(run: TrainingRun, actor: Actor) -> None:
    with pytest.raises(Conflict, match="running"):
        services.run_start(run=run, by=actor)


def test_the_last_segment_registers_one_version_with_its_lineage(run: TrainingRun, workers: Workers) -> None:
    finish(run, workers)

    assert run.state == TrainingRun.State.DONE
    version = ModelVersion.objects.get(origin=run.lineage_key)
    assert run.version == version
    assert version.parent == run.parent
    assert version.adapter_digest == run.adapter_digest
    assert version.adapter_name == run.adapter_name
    assert [node.key for node in lineage_strip(run.lineage_key)] == [
        run.dataset.lineage_key,
        run.lineage_key,
        version.lineage_key,
    ]
    assert Event.objects.filter(kind="TrainingRunFinished", topic=run.lineage_key).count() == 1


def test_every_step_advances_the_policy(run: TrainingRun, workers: Workers) -> None:
    finish(run, workers)

    assert run.policy_version == 3
    assert [segment.state for segment in run.segments.all()] == [Segment.State.DONE] * 3


def test_a_skipped_step_keeps_the_version_and_its_adapter(run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    first = workers.train()
    workers.roll()
    workers.train(skipped="nothing to train on: 4 groups without variance")

    run.refresh_from_db()
    assert (run.policy_version, run.adapter_digest) == (1, first)
    assert run.segments.get(index=1).skipped.startswith("nothing to train on")
    assert run.segments.get(index=1).state == Segment.State.DONE


def test_a_run_that_never_learned_registers_nothing_and_says_so(run: TrainingRun, workers: Workers) -> None:
    finish(run, workers, skipped="nothing to train on")

    assert run.state == TrainingRun.State.DONE
    assert run.version is None
    assert "no version was made" in run.error
    assert not ModelVersion.objects.filter(origin=run.lineage_key).exists()


def test_a_failure_stops_the_run_with_a_reason(run: TrainingRun, workers: Workers) -> None:
    workers.fail(workers.first("rollout_batch"), "the engine is gone")

    run.refresh_from_db()
    assert run.state == TrainingRun.State.FAILED
    assert run.error == "Generating step 1 failed: the engine is gone"
    assert not workers.open()


def test_a_failed_round_asks_the_same_prompts_when_resumed(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    """NeMo-RL PR#3599. The other round, which was cancelled with it, too."""
    asked = [unit.payload["indexes"] for unit in workers.open()]
    workers.fail(workers.first("rollout_batch"))

    services.run_resume(run=run, by=actor)

    assert [unit.payload["indexes"] for unit in workers.open("rollout_batch")] == asked


def test_a_finished_round_is_not_generated_again(run: TrainingRun, workers: Workers, actor: Actor) -> None:
    ahead = WorkUnit.objects.get(key=f"rollout:{run.pk}:1:0:0")
    digest = workers.roll(ahead)
    workers.fail(workers.only("rollout_batch"))

    services.run_resume(run=run, by=actor)

    assert [unit.key for unit in workers.open()] == [f"rollout:{run.pk}:0:0:1"]
    finish(run, workers)
    assert run.state == TrainingRun.State.DONE
    assert run.segments.get(index=1).rollout_digests == [digest]


def test_training_continues_from_the_last_checkpoint(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    workers.roll()
    workers.train()
    run.refresh_from_db()
    checkpoint = run.checkpoint_digest
    workers.roll()
    unit = workers.first("train_segment")
    rollouts = unit.payload["rollout_digests"]
    for _ in range(unit.max_attempts):
        workers.fail(unit, "killed", retryable=True)
    run.refresh_from_db()
    assert run.state == TrainingRun.State.FAILED

    services.run_resume(run=run, by=actor)

    again = workers.only("train_segment")
    assert again.payload["checkpoint_digest"] == checkpoint
    assert again.payload["policy_version"] == 1
    assert again.payload["rollout_digests"] == rollouts
    finish(run, workers)
    assert run.state == TrainingRun.State.DONE
    assert run.policy_version == 3


def test_a_batch_that_training_refused_is_drawn_anew(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    """The same batch from the same checkpoint would diverge in the same way, for ever."""
    first = workers.first("rollout_batch")
    workers.roll(first)
    workers.fail(workers.only("train_segment"), "the loss is nan; the batch is artifact abc")

    services.run_resume(run=run, by=actor)

    again = WorkUnit.objects.get(key=f"rollout:{run.pk}:0:0:1")
    assert again.payload["seed"] != first.payload["seed"]
    assert not workers.open("train_segment")
    finish(run, workers)
    assert run.state == TrainingRun.State.DONE


def test_a_step_that_nothing_could_judge_stops_the_run(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    """An engine that is down must not use up the plan."""
    asked = workers.first("rollout_batch").payload["indexes"]
    workers.roll(rewards=(None, None))

    run.refresh_from_db()
    assert run.state == TrainingRun.State.FAILED
    assert run.error == (
        "Generating step 1: no answer could be judged (8 errors). "
        "Most frequent error: the engine did not answer."
    )
    assert run.trajectories.count() == 8
    services.run_resume(run=run, by=actor)
    assert WorkUnit.objects.get(key=f"rollout:{run.pk}:0:0:1").payload["indexes"] == asked


@pytest.mark.parametrize(
    ("rewards", "state", "start"),
    [
        ((None,) * 4, "failed", "no answer could be judged (4 errors)."),
        (
            (1.0, None, None, None),
            "paused",
            "3 of 4 episodes ended in an error. Find the cause, then resume.",
        ),
    ],
)
def test_a_run_that_stops_names_the_most_frequent_error(
    run: TrainingRun, workers: Workers, rewards: tuple[float | None, ...], state: str, start: str
) -> None:
    """A prompt that does not fit the model's context was only to be seen on a trajectory."""
    unit = workers.first("rollout_batch")
    task_id = next(workers.store.iter_jsonl(unit.payload["tasks_digest"]))["id"]
    too_long = "engine answered 400: the maximum context length is 512"
    made = [trajectory(task_id, sample, reward) for sample, reward in enumerate(rewards)]
    lost = [one.model_copy(update={"error": too_long}) if one.reward is None else one for one in made[:-1]]
    digest = workers.store.put(
        trajectory_file([made[-1], *lost], RolloutInfo(policy_version=0, temperature=1.0))
    )
    errors = rewards.count(None)

    workers.roll(
        unit,
        trajectories_digest=digest,
        counts={"error": errors, "passed": len(rewards) - errors},
    )

    run.refresh_from_db()
    assert run.state == state
    assert run.error == f"Generating step 1: {start} Most frequent error: {too_long}."


def test_a_unit_retried_by_hand_counts_when_the_run_is_resumed(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    unit = workers.first("rollout_batch")
    workers.fail(unit)
    unit_retry(unit=unit, by=actor)
    digest = workers.roll(unit)

    services.run_resume(run=run, by=actor)

    assert run.segments.get(index=0).rollout_digests == [digest]
    assert workers.only("train_segment").payload["rollout_digests"] == [digest]


def test_a_late_twin_of_a_finished_round_changes_nothing(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    unit = workers.first("rollout_batch")
    workers.fail(unit)
    services.run_resume(run=run, by=actor)
    unit_retry(unit=unit, by=actor)
    digest = workers.roll(WorkUnit.objects.get(key=f"rollout:{run.pk}:0:0:1"))

    workers.roll(unit)

    assert run.segments.get(index=0).rollout_digests == [digest]


def test_a_cancelled_unit_fails_its_run_and_keeps_the_batch(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    digest = workers.roll()

    unit_cancel(unit=workers.only("train_segment"), by=actor)

    run.refresh_from_db()
    assert run.state == TrainingRun.State.FAILED
    assert run.segments.get(index=0).rollout_digests == [digest]


def test_pausing_plans_nothing_new_and_keeps_what_finishes(
    run: TrainingRun, workers: Workers, actor: Actor
) -> None:
    services.run_pause(run=run, by=actor)
    for unit in workers.open():
        workers.roll(unit)

    assert not workers.open()
    assert {segment.state for segment in run.segments.all()} == {Segment.State.TRAINING}


def test_resuming_goes_on_where_the_plan_stands(run: TrainingRun, workers: Workers, actor: Actor) -> None:
    services.run_pause(run=run, by=actor)
    for unit in workers.open():
        workers.roll(unit)

    services.run_resume(run=run, by=actor)

    assert [unit.kind for unit in workers.open()] == ["train_segment"]
    finish(run, workers)
    assert run.state == TrainingRun.State.DONE


def test_a_paused_run_may_fail(run: TrainingRun, workers: Workers, actor: Actor) -> None:
    services.run_pause(run=run, by=actor)

    workers.fail(workers.first("rollout_batch"))

    run.refresh_from_db()
    assert run.state == TrainingRun.State.FAILED


def test_resuming_needs_admission(run: TrainingRun, family: Family, actor: Actor) -> None:
    services.run_pause(run=run, by=actor)
    admit(family.verifier, "unchecked")

    with pytest.raises(Conflict, match="gauntlet"):
        services.run_resume(run=run, by=actor)


def test_cancelling_discards_what_comes_back(run: TrainingRun, workers: Workers, actor: Actor) -> None:
    unit = workers.send(workers.first("rollout_batch"))

    services.run_cancel(run=run, by=actor)

    assert not workers.finish(unit, workers.rollouts(unit)[1])
    assert not run.trajectories.exists()
    assert run.state == TrainingRun.State.CANCELLED
    with pytest.raises(Conflict):
        services.run_resume(run=run, by=actor)


def test_adapter_names_are_never_used_again(run: TrainingRun, workers: Workers, actor: Actor) -> None:
    """vllm#42125: an engine keeps the weights that it first knew under a name."""
    names = []
    while units := workers.open():
        for unit in units:
            if unit.kind == "rollout_batch":
                names.append(unit.payload["target"]["model"])
                workers.roll(unit)
            else:
                workers.train(unit)
    run.refresh_from_db()

    assert len({*names, run.adapter_name}) == 3  # the parent, v1, and the last one
