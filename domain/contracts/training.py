"""Every number of a training run, in one frozen object that travels as JSON.

The web side checks it when a run is made; the worker trains by it.
"""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from domain.contracts.base import Contract

# What vLLM can load at run time: linear layers inside the blocks, nothing that changes the vocabulary.
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class TrainConfig(Contract):
    """Defaults suit the pocket model; a large model wants a smaller ``lr``."""

    algorithm: Literal["grpo", "cispo"] = "grpo"
    seed: int = 0

    # Adapter
    lora_r: int = Field(default=8, ge=1, le=256)
    lora_alpha: float = Field(default=16.0, gt=0.0)
    lora_targets: tuple[str, ...] = LORA_TARGETS

    # Optimizer: AdamW.
    lr: float = Field(default=2e-3, gt=0.0, le=1.0)
    warmup_steps: int = Field(default=0, ge=0)
    decay_steps: int = Field(default=0, ge=0)  # linear, down to a twentieth at this step; 0: constant
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.95, ge=0.0, lt=1.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    max_grad_norm: float = Field(default=1.0, gt=0.0)

    # How a segment's groups are cut: optimizer batches of ``groups_per_step`` (0: all in one),
    # the whole pool ``epochs`` times, forward passes of at most ``pack_tokens`` tokens.
    groups_per_step: int = Field(default=0, ge=0)
    epochs: int = Field(default=1, ge=1, le=16)
    pack_tokens: int = Field(default=4096, ge=1)
    logprob_chunk: int = Field(default=1024, ge=1)  # tokens whose logits exist at once

    # Objective
    clip_low: float = Field(default=0.8, gt=0.0, le=1.0)
    clip_high: float = Field(default=1.28, ge=1.0)
    importance_cap: float = Field(default=2.0, gt=0.0)
    kl_beta: float = Field(default=0.0, ge=0.0)
    scale_advantage: bool = False  # divide by the group's standard deviation; off: Dr. GRPO
    family_weights: dict[str, float] = Field(default_factory=dict)  # absent families weigh 1
    overlong: Literal["mask", "shape", "keep"] = "mask"
    overlong_limit: int = Field(default=0, ge=0)  # tokens; "shape" needs it
    overlong_cache: int = Field(default=0, ge=0)  # the last c tokens before the limit

    # What rollouts may be trained on
    temperature: float = Field(default=1.0, gt=0.0, le=2.0)
    staleness: int = Field(default=1, ge=0)  # eta: policy versions a rollout may lag behind

    @field_validator("lora_targets")
    @classmethod
    def _loadable(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        if not targets or not set(targets) <= set(LORA_TARGETS):
            raise ValueError(f"LoRA targets must be some of {', '.join(LORA_TARGETS)}")
        return targets

    @field_validator("family_weights")
    @classmethod
    def _positive(cls, weights: dict[str, float]) -> dict[str, float]:
        if any(weight <= 0.0 for weight in weights.values()):
            raise ValueError("a family's weight must be above 0; leave the family out of the run instead")
        return weights

    @model_validator(mode="after")
    def _shape_has_a_place(self) -> Self:
        if self.overlong == "shape" and not 0 < self.overlong_cache <= self.overlong_limit:
            raise ValueError('overlong "shape" needs 0 < overlong_cache <= overlong_limit')
        return self
