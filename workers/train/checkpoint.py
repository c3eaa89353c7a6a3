"""All that a segment needs to go on exactly where the last one stopped, as one tree artifact.

Files: the adapter in PEFT layout, the optimizer's tensors and the random state as safetensors
(no pickle: a checkpoint is data), counters and curriculum as JSON. The manifest is written last,
so a checkpoint exists whole or not at all.
"""

import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from artifacts import ArtifactStore
from workers.context import UnitRefused
from workers.train.policy import ADAPTER_CONFIG, ADAPTER_WEIGHTS, Policy

_FORMAT = "flywheel-checkpoint-1"
_STATE, _OPTIMIZER, _RANDOM = "state.json", "optimizer.safetensors", "random.safetensors"


class CheckpointRefused(UnitRefused):
    """A checkpoint of another format, run or configuration."""


@dataclass
class TrainState:
    """Counters of one run. ``consumed`` are the rollout artifacts trained on, oldest first;
    ``curriculum`` is the state of ``domain.curriculum``."""

    policy_version: int = 0
    optimizer_steps: int = 0
    tokens_trained: int = 0
    consumed: list[str] = field(default_factory=list)
    curriculum: dict[str, Any] = field(default_factory=dict)


def save_adapter(store: ArtifactStore, policy: Policy) -> str:
    """The adapter alone, as an engine loads it; returns the tree's digest."""
    return _put(store, {ADAPTER_CONFIG: policy.adapter_config(), ADAPTER_WEIGHTS: policy.adapter_weights()})


def save_checkpoint(
    store: ArtifactStore, policy: Policy, optimizer: torch.optim.Optimizer, state: TrainState
) -> str:
    """Store everything; equal states give equal digests."""
    return _put(
        store,
        {
            ADAPTER_CONFIG: policy.adapter_config(),
            ADAPTER_WEIGHTS: policy.adapter_weights(),
            _OPTIMIZER: save_tensors(_optimizer_tensors(policy, optimizer)),
            _RANDOM: save_tensors({"torch": torch.get_rng_state()}),
            _STATE: json.dumps({"format": _FORMAT, **asdict(state)}, sort_keys=True).encode(),
        },
    )


def load_checkpoint(
    store: ArtifactStore, digest: str, policy: Policy, optimizer: torch.optim.Optimizer
) -> TrainState:
    """Put policy, optimizer and random state back; returns the counters."""
    files = {name: store.get(part) for name, part in store.get_json(digest)["files"].items()}
    values = json.loads(files.get(_STATE, b"{}"))
    if values.pop("format", None) != _FORMAT:
        raise CheckpointRefused(f"artifact {digest} is not a training checkpoint")
    if files[ADAPTER_CONFIG] != policy.adapter_config():
        raise CheckpointRefused(f"checkpoint {digest} was made with another adapter configuration or base")
    policy.load_adapter_weights(files[ADAPTER_WEIGHTS])
    _load_optimizer(policy, optimizer, load_tensors(files[_OPTIMIZER]))
    torch.set_rng_state(load_tensors(files[_RANDOM])["torch"])
    return TrainState(**values)


def _put(store: ArtifactStore, files: dict[str, bytes]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        return store.put_tree(folder)


def _optimizer_tensors(policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}|{key}": value.detach().contiguous()
        for name, parameter in policy.parameters().items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _load_optimizer(policy: Policy, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    optimizer.state.clear()
    parameters = policy.parameters()
    for label in sorted(tensors):
        name, key = label.split("|")
        optimizer.state[parameters[name]][key] = tensors[label].clone()
