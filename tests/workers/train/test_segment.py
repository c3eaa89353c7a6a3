import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from domain.contracts import RunTrainSegment, TrainSegmentResult
from tests.workers.conftest import FakeContext
from tests.workers.train.conftest import group_of, trajectory
from workers.train import segment as segment_module
from workers.train.batch import RolloutsRefused
from workers.train.checkpoint import CheckpointRefused
from workers.train.segment import SegmentFailed, run_train_segment

Put = Callable[..., str]
Make = Callable[..., RunTrainSegment]


@pytest.fixture(autouse=True)
def fresh_process() -> None:
    _forget_loaded_model()


def test_a_segment_makes_the_next_version_and_an_adapter_that_engines_load(
    ctx: FakeContext, put_rollouts: Put, make_message: Make, tmp_path: Path
) -> None:
    result = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0, 0.0]))]), ctx)

    folder = ctx.store.materialize(result.adapter_digest, tmp_path / "adapter")
    assert result.policy_version == 1
    assert result.skipped == ""
    assert result.tokens_trained == 9
    assert sorted(path.name for path in folder.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    assert any(
        value.abs().max() > 0
        for name, value in load_file(folder / "adapter_model.safetensors").items()
        if "lora_B" in name
    )


def test_metrics_are_finite_and_name_what_happened(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    rollouts = [*group_of([1.0, None, 0.0]), *group_of([1.0, 1.0], "flat")]

    metrics = run_train_segment(make_message([put_rollouts(rollouts)], config={"kl_beta": 0.1}), ctx).metrics

    assert metrics["reward_mean"] == pytest.approx(0.75)
    assert metrics["rows_without_reward"] == 1
    assert metrics["groups_without_variance"] == 1
    assert {
        "loss",
        "kl",
        "ratio_mean",
        "clip_fraction",
        "grad_norm",
        "entropy",
        "importance_mean",
        "importance_max",
        "engine_kl",
        "seconds",
    } <= metrics.keys()


def test_the_same_message_gives_the_same_result(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    message = make_message([put_rollouts(group_of([1.0, 0.0, 0.0]))])

    first = run_train_segment(message, ctx)
    warm = run_train_segment(message, ctx)
    _forget_loaded_model()
    cold = run_train_segment(message, ctx)

    assert _facts(first) == _facts(warm) == _facts(cold)


def test_a_killed_run_resumes_bit_for_bit(ctx: FakeContext, put_rollouts: Put, make_message: Make) -> None:
    rollouts = [put_rollouts(group_of([1.0, 0.0, float(i)], f"g{i}")) for i in range(3)]

    unbroken = _run(ctx, make_message, rollouts)
    broken = _run(ctx, make_message, rollouts, between=_forget_loaded_model)

    assert [_facts(result) for result in unbroken] == [_facts(result) for result in broken]


def test_a_resumed_run_takes_every_rollout_once(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    """NeMo-RL PR#3599: after kill and resume no prompt is trained twice and none is left out."""
    first, second = (put_rollouts(group_of([1.0, 0.0], name)) for name in ("a", "b"))
    done = run_train_segment(make_message([first]), ctx)
    _forget_loaded_model()
    follow_up = {"policy_version": 1, "checkpoint_digest": done.checkpoint_digest}

    with pytest.raises(RolloutsRefused, match=f"trained on before: {first[:12]}"):
        run_train_segment(make_message([first, second], **follow_up), ctx)
    result = run_train_segment(make_message([second], **follow_up), ctx)

    assert _state(ctx, result)["consumed"] == [first, second]


def test_one_artifact_named_twice_is_refused(ctx: FakeContext, put_rollouts: Put, make_message: Make) -> None:
    digest = put_rollouts(group_of([1.0, 0.0]))

    with pytest.raises(RolloutsRefused, match="trained on before"):
        run_train_segment(make_message([digest, digest]), ctx)


def test_a_segment_with_every_row_cut_off_is_skipped(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    """trl PR#3248: no division of nothing by nothing; the version stays what it was."""
    digest = put_rollouts(group_of([1.0, 0.0], finish_reason="length"))

    result = run_train_segment(make_message([digest]), ctx)

    assert result.skipped == "nothing to train on: 2 rows cut off"
    assert result.policy_version == 0
    assert "loss" not in result.metrics
    assert _state(ctx, result)["consumed"] == [digest]


def test_a_skipped_segment_leaves_the_weights_alone(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    trained = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0]))]), ctx)
    lost = put_rollouts([trajectory("x", 0, None), trajectory("x", 1, None)], policy_version=1)

    skipped = run_train_segment(
        make_message([lost], policy_version=1, checkpoint_digest=trained.checkpoint_digest), ctx
    )

    assert skipped.skipped == "nothing to train on: 1 groups too small, 2 rows without reward"
    assert skipped.adapter_digest == trained.adapter_digest
    assert skipped.policy_version == 1


def test_a_diverging_batch_is_kept_and_named(ctx: FakeContext, put_rollouts: Put, make_message: Make) -> None:
    digest = put_rollouts(group_of([1.0, 0.0], logprobs=(-200.0,) * 3))
    message = make_message([digest], config={"importance_cap": 1e30, "lr": 1e-2})

    with pytest.raises(SegmentFailed, match=r"is inf|is nan") as caught:
        run_train_segment(message, ctx)

    kept = str(caught.value).rsplit(" ", 1)[1]
    assert pq.read_table(io.BytesIO(ctx.store.get(kept)))["sample"].to_pylist() == [0, 1]
    assert segment_module._session is None


def test_a_run_goes_on_from_its_last_checkpoint_after_a_failed_segment(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    good, bad = put_rollouts(group_of([1.0, 0.0])), put_rollouts(group_of([1.0, 0.0]), temperature=0.5)
    first = run_train_segment(make_message([good]), ctx)
    follow_up = {"policy_version": 1, "checkpoint_digest": first.checkpoint_digest}
    with pytest.raises(RolloutsRefused):
        run_train_segment(make_message([bad], **follow_up), ctx)

    other = put_rollouts(group_of([0.0, 1.0], "other"), policy_version=1)
    after_failure = run_train_segment(make_message([other], **follow_up), ctx)

    _forget_loaded_model()
    assert _facts(after_failure) == _facts(run_train_segment(make_message([other], **follow_up), ctx))


def test_a_checkpoint_of_another_version_is_refused(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    done = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0]))]), ctx)
    again = put_rollouts(group_of([1.0, 0.0], "b"))

    with pytest.raises(CheckpointRefused, match="holds version 1, the segment starts at 5"):
        run_train_segment(
            make_message([again], policy_version=5, checkpoint_digest=done.checkpoint_digest), ctx
        )


def test_a_checkpoint_with_another_rank_is_refused(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    done = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0]))]), ctx)
    again = put_rollouts(group_of([1.0, 0.0], "b"))

    with pytest.raises(CheckpointRefused, match="another adapter configuration"):
        run_train_segment(
            make_message(
                [again], policy_version=1, checkpoint_digest=done.checkpoint_digest, config={"lora_r": 2}
            ),
            ctx,
        )


def test_checkpoints_hold_no_pickles(ctx: FakeContext, put_rollouts: Put, make_message: Make) -> None:
    result = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0]))]), ctx)

    names = set(ctx.store.get_json(result.checkpoint_digest)["files"])
    assert names == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "optimizer.safetensors",
        "random.safetensors",
        "state.json",
    }


def test_a_worker_without_the_model_folder_takes_it_from_the_store(
    ctx: FakeContext, put_rollouts: Put, make_message: Make, tiny_base: Path
) -> None:
    rollouts, digest = put_rollouts(group_of([1.0, 0.0])), ctx.store.put_tree(tiny_base)

    result = run_train_segment(make_message([rollouts], base_model="/nowhere/tiny", base_digest=digest), ctx)

    assert result.policy_version == 1


def test_the_curriculum_travels_with_the_checkpoint(
    ctx: FakeContext, put_rollouts: Put, make_message: Make
) -> None:
    rollouts = put_rollouts([*group_of([1.0, None, 0.0, 0.0], "hard"), *group_of([None, None], "lost")])

    result = run_train_segment(make_message([rollouts]), ctx)

    assert _state(ctx, result)["curriculum"]["tasks"] == {"hard": [pytest.approx(1 / 3), 1]}


def test_training_can_continue_an_adapter(ctx: FakeContext, put_rollouts: Put, make_message: Make) -> None:
    """trl#3194: the first segment starts at the given adapter, with no distance to its reference."""
    first = run_train_segment(make_message([put_rollouts(group_of([1.0, 0.0]))]), ctx)
    rollouts = put_rollouts(group_of([1.0, 0.0], "b"))

    result = run_train_segment(
        make_message([rollouts], init_adapter_digest=first.adapter_digest, config={"kl_beta": 0.1}), ctx
    )

    assert result.metrics["kl"] == pytest.approx(0.0, abs=1e-6)
    assert result.adapter_digest != first.adapter_digest


def _run(
    ctx: FakeContext, make: Make, rollouts: list[str], between: Callable[[], None] = lambda: None
) -> list[TrainSegmentResult]:
    results: list[TrainSegmentResult] = []
    for number, digest in enumerate(rollouts):
        checkpoint = results[-1].checkpoint_digest if results else ""
        message = make([digest], policy_version=number, checkpoint_digest=checkpoint)
        results.append(run_train_segment(message, ctx))
        between()
    return results


def _facts(result: TrainSegmentResult) -> dict[str, Any]:
    values = result.model_dump()
    values["metrics"].pop("seconds")
    return values


def _state(ctx: FakeContext, result: TrainSegmentResult) -> dict[str, Any]:
    data = ctx.store.get(ctx.store.get_json(result.checkpoint_digest)["files"]["state.json"])
    return json.loads(data)


def _forget_loaded_model() -> None:
    """What a killed process leaves behind: artifacts only."""
    segment_module._session = None
    torch.manual_seed(torch.seed())
