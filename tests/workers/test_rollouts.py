import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from domain.contracts import (
    ChatMessage,
    EngineTarget,
    Flag,
    RolloutBatchResult,
    RunRolloutBatch,
    RunTrainSegment,
    TaskSpec,
    Trajectory,
    Verdict,
    VerifierSpec,
)
from domain.contracts.training import TrainConfig
from domain.contracts.trajectory_table import from_row
from packs.starter import tasks as starter
from tests.workers.conftest import FakeContext
from tests.workers.engine.conftest import WEIGHTS
from workers.rollouts import RolloutRefused, _summary, run_rollout_batch
from workers.train import segment as segment_module
from workers.train.batch import make_packs, read_rollouts
from workers.train.policy import Policy
from workers.train.segment import run_train_segment


@pytest.fixture(autouse=True)
def _fresh_process() -> Iterator[None]:
    torch.set_num_threads(1)
    segment_module._session = None
    yield
    segment_module._session = None


def test_every_task_gets_its_group(ctx: FakeContext, engine_url: str) -> None:
    result = _roll(ctx, engine_url, indexes=(2, 0))

    rows = _rows(ctx, result)
    names = [task.id for task in _tasks()]
    assert [(row.task_id, row.sample) for row in rows] == [(names[i], s) for i in (2, 0) for s in range(4)]
    assert len({row.seed for row in rows}) == 8
    assert sum(result.counts.values()) == 8
    assert set(result.tasks) == {names[2], names[0]}


def test_one_task_drawn_twice_makes_two_groups_with_other_seeds(ctx: FakeContext, engine_url: str) -> None:
    rows = _rows(ctx, _roll(ctx, engine_url, indexes=(1, 1)))

    assert len({row.group for row in rows}) == 2
    assert len({row.seed for row in rows}) == 8


def test_two_engines_of_one_run_draw_differently(ctx: FakeContext, engine_url: str) -> None:
    """verl PR#5179: parts of one step on different engines share no seed, nor do two steps."""
    parts = [_roll(ctx, engine_url, indexes=(0, 1)), _roll(ctx, engine_url, indexes=(2, 3))]
    next_step = _roll(ctx, engine_url, indexes=(0, 1), policy_version=1)

    seeds = [row.seed for part in [*parts, next_step] for row in _rows(ctx, part)]
    assert len(set(seeds)) == len(seeds) == 24


def test_a_target_without_tokens_is_refused(ctx: FakeContext) -> None:
    with pytest.raises(RolloutRefused, match="chat only"):
        _roll(ctx, "http://nowhere", protocol="chat")


def test_the_summary_agrees_with_the_rows(ctx: FakeContext, engine_url: str) -> None:
    result = _roll(ctx, engine_url, indexes=range(4))

    rows = _rows(ctx, result)
    passed = [row.state == "passed" for row in rows]
    assert result.pass_rate == pytest.approx(np.mean(passed))
    assert result.reward_mean == pytest.approx(np.mean([row.reward for row in rows]))
    assert result.families["invoice_fields"]["episodes"] == 16
    assert result.completion_tokens_mean == pytest.approx(np.mean([len(r.steps[0].token_ids) for r in rows]))
    assert 0.0 < result.pipeline["engine_busy_share"] <= 1.0


def test_the_summary_says_what_is_watched() -> None:
    flag = Flag(detector="d", reason="r")
    failed, passed = Verdict(state="failed", score=0.0), Verdict(state="passed", score=1.0)
    rows = [
        _row("a", "passed", hidden=failed, flags=(flag,)),
        _row("a", "passed", hidden=passed),
        _row("a", "passed"),
        _row("canary", "passed", flags=(flag,)),
        _row("canary", "failed"),
        _row("canary", "error"),
    ]
    message = RunRolloutBatch(
        tasks_digest="",
        indexes=(),
        group_size=2,
        temperature=1.0,
        seed=0,
        target=EngineTarget(base_url="", model=""),
        policy_version=0,
    )

    counts = _summary(rows, message, {"canary"}).counts

    assert counts == {
        "passed": 4,
        "failed": 1,
        "error": 1,
        "flagged": 2,
        "hidden_checked": 2,
        "hidden_failed": 1,
        "canaries": 2,
        "canary_passes": 1,
    }


def test_engine_and_trainer_agree_on_every_token(ctx: FakeContext, engine_url: str) -> None:
    """The engine's log-probabilities are the trainer's, at a temperature that is not 1."""
    digest = _roll(ctx, engine_url, temperature=0.7).trajectories_digest

    rows = read_rollouts(ctx.store, [digest], temperature=0.7)
    policy = Policy(WEIGHTS, TrainConfig())
    for pack in make_packs(rows, advantage=np.ones(len(rows)), weight=np.ones(len(rows)), pack_tokens=4096):
        scores = policy.score(pack, temperature=0.7, chunk=64)
        torch.testing.assert_close(scores.logp.detach(), pack.logp_behav, atol=1e-3, rtol=1e-3)


def test_engine_and_trainer_agree_on_every_token_of_several_turns(ctx: FakeContext, engine_url: str) -> None:
    """trl#5224: what the template put between two turns is in the trainer's context and in no loss."""
    task = TaskSpec(
        id="doc",
        family="documents",
        messages=(ChatMessage(role="user", content="Total?"),),
        verifier=VerifierSpec(kind="exact"),
        reference="7",
        environment="documents",
        environment_params={"pages": ["Total 7"], "max_turns": 3},
        max_tokens=48,
    )

    digest = _roll(ctx, engine_url, indexes=(0,), tasks=[task], temperature=0.7).trajectories_digest

    rows = read_rollouts(ctx.store, [digest], temperature=0.7)
    assert any(len(row.mask) > row.mask.sum() for row in rows)  # at least one came to a second turn
    policy = Policy(WEIGHTS, TrainConfig())
    for pack in make_packs(rows, advantage=np.ones(len(rows)), weight=np.ones(len(rows)), pack_tokens=4096):
        scores = policy.score(pack, temperature=0.7, chunk=64)
        torch.testing.assert_close(scores.logp.detach(), pack.logp_behav, atol=1e-3, rtol=1e-3)


def test_a_prompt_starts_with_exactly_one_first_token(ctx: FakeContext, engine_url: str) -> None:
    """alignment-handbook#127, trl#3520: template and tokenizer both know the token, one adds it."""
    first = json.loads((WEIGHTS / "config.json").read_text())["bos_token_id"]

    rows = _rows(ctx, _roll(ctx, engine_url))

    assert all(row.prompt_ids[0] == first and row.prompt_ids.count(first) == 1 for row in rows)


def test_the_end_token_is_sampled_and_trained(ctx: FakeContext, engine_url: str) -> None:
    """trl#1623: an answer that stopped holds its end token, with mask 1."""
    end = json.loads((WEIGHTS / "config.json").read_text())["eos_token_id"]

    rows = _rows(ctx, _roll(ctx, engine_url))

    stopped = [row.steps[0] for row in rows if row.steps[0].finish_reason == "stop"]
    assert stopped
    assert all(step.token_ids[-1] == end and step.mask[-1] == 1 for step in stopped)


def test_a_trained_adapter_is_loaded_under_a_fresh_name_and_sampled(
    ctx: FakeContext, engine_url: str
) -> None:
    """vllm#42125, ms-swift#9855: the second step's tokens come from the weights the first one made."""
    message = _segment_message
    first = run_train_segment(message(_roll(ctx, engine_url).trajectories_digest), ctx)
    served = {"model": "turn-v1-a1", "adapter_digest": first.adapter_digest, "policy_version": 1}

    second = _roll(ctx, engine_url, **served)
    trained = run_train_segment(
        message(second.trajectories_digest, version=1, checkpoint=first.checkpoint_digest), ctx
    )

    assert {row.served_model for row in _rows(ctx, second)} == {"turn-v1-a1"}
    assert trained.metrics["importance_max"] == pytest.approx(1.0, abs=1e-2)
    assert trained.metrics["engine_kl"] == pytest.approx(0.0, abs=1e-5)
    base = Policy(WEIGHTS, TrainConfig())
    (pack, *_) = _packs(ctx, second)
    gap = base.score(pack, temperature=1.0, chunk=64).logp.detach() - pack.logp_behav
    assert gap.abs().max() > 1e-2  # the base model would not have said so


def test_retired_adapters_are_gone_from_the_engine(ctx: FakeContext, engine_url: str) -> None:
    adapter = run_train_segment(
        _segment_message(_roll(ctx, engine_url).trajectories_digest), ctx
    ).adapter_digest
    _roll(ctx, engine_url, model="old-v1-a1", adapter_digest=adapter, policy_version=1)

    _roll(ctx, engine_url, retire=("old-v1-a1",))

    lost = _roll(ctx, engine_url, model="old-v1-a1", policy_version=1)
    assert lost.counts == {"error": 16}
    assert lost.reward_mean is None


def _row(task: str, state: Any, **more: Any) -> Trajectory:
    return Trajectory(task_id=task, family="f", group=task, state=state, **more)


def _tasks() -> list[Any]:
    return starter.generate("invoice_fields", seed=1, count=4)


def _roll(
    ctx: FakeContext,
    url: str,
    *,
    indexes: Any = range(4),
    temperature: float = 1.0,
    policy_version: int = 0,
    model: str = "pocket",
    adapter_digest: str = "",
    protocol: str = "tokens",
    retire: tuple[str, ...] = (),
    tasks: list[TaskSpec] | None = None,
) -> RolloutBatchResult:
    message = RunRolloutBatch(
        tasks_digest=ctx.store.put_jsonl(task.model_dump(mode="json") for task in tasks or _tasks()),
        indexes=tuple(indexes),
        group_size=4,
        temperature=temperature,
        seed=5,
        target=EngineTarget(base_url=url, model=model, adapter_digest=adapter_digest, protocol=protocol),
        policy_version=policy_version,
        retire=retire,
    )
    return run_rollout_batch(message, ctx)


def _segment_message(rollouts: str, version: int = 0, checkpoint: str = "") -> RunTrainSegment:
    return RunTrainSegment(
        run_slug="turn",
        segment=version + 1,
        policy_version=version,
        base_model=str(WEIGHTS),
        checkpoint_digest=checkpoint,
        rollout_digests=(rollouts,),
        config={"lr": 2e-2},
    )


def _rows(ctx: FakeContext, result: RolloutBatchResult) -> list[Trajectory]:
    table = pq.read_table(io.BytesIO(ctx.store.get(result.trajectories_digest)))
    return [from_row(row) for row in table.to_pylist()]


def _packs(ctx: FakeContext, result: RolloutBatchResult) -> list[Any]:
    rows = read_rollouts(ctx.store, [result.trajectories_digest], temperature=1.0)
    return make_packs(rows, advantage=np.ones(len(rows)), weight=np.ones(len(rows)), pack_tokens=4096)
