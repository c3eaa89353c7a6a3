"""A random Llama of some ten thousand weights, and rollouts made up for it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from artifacts import ArtifactStore
from domain.contracts import RunTrainSegment, Step, Trajectory
from domain.contracts.trajectory_table import RolloutInfo
from tests.workers.conftest import FakeContext
from workers.trajectory_file import trajectory_file

VOCAB, END = 48, 2


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose padding token is its end token, as in many published ones."""
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=24,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
        initializer_range=0.3,
    )
    folder = tmp_path_factory.mktemp("tiny") / "weights"
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def store(ctx: FakeContext) -> ArtifactStore:
    return ctx.store


def trajectory(
    group: str,
    sample: int,
    reward: float | None,
    *,
    tokens: Sequence[int] | None = None,
    logprobs: Sequence[float] | None = None,
    finish_reason: str = "stop",
    family: str = "letters",
    policy_version: int = 0,
    prompt: Sequence[int] = (1, 7, 8, 9),
) -> Trajectory:
    tokens = (10 + sample, 20 + sample, END) if tokens is None else tokens
    step = Step(
        token_ids=tuple(tokens),
        logprobs=tuple(logprobs or [-2.0] * len(tokens)),
        mask=(1,) * len(tokens),
        policy_version=policy_version,
        finish_reason=finish_reason,
    )
    return Trajectory(
        task_id=group,
        family=family,
        group=group,
        sample=sample,
        prompt_ids=tuple(prompt),
        steps=(step,),
        state="error" if reward is None else "passed" if reward > 0.5 else "failed",
        reward=reward,
    )


def group_of(rewards: Sequence[float | None], name: str = "g", **more: Any) -> list[Trajectory]:
    return [trajectory(name, sample, reward, **more) for sample, reward in enumerate(rewards)]


@pytest.fixture
def put_rollouts(store: ArtifactStore) -> Callable[..., str]:
    def put(trajectories: Sequence[Trajectory], *, temperature: float = 1.0, **info: Any) -> str:
        facts = RolloutInfo(**{"policy_version": 0, "temperature": temperature} | info)
        return store.put(trajectory_file(trajectories, facts))

    return put


@pytest.fixture
def make_message(tiny_base: Path) -> Callable[..., RunTrainSegment]:
    def make(rollouts: Sequence[str], **changes: Any) -> RunTrainSegment:
        config = {"lora_r": 4, "lr": 1e-2} | changes.pop("config", {})
        values = {
            "run_slug": "run",
            "segment": 1,
            "policy_version": 0,
            "base_model": str(tiny_base),
            "rollout_digests": tuple(rollouts),
            "config": config,
        }
        return RunTrainSegment(**values | changes)

    return make
