"""The pocket server's own forward pass of a Llama model over a slotted key-value cache.

Transformers is not used here: for a model of a million weights its Python costs several times
the arithmetic. Rows never pad on the left. A slot's positions start at 0, a key is visible
exactly when its position is not after the query's, and what padding writes behind a row's end
is overwritten before it can be seen.

Shapes: B rows, Q new tokens a row, H heads, D head size, T cache length, V vocabulary.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


class UnsupportedModel(ValueError):
    """The folder holds a model that the pocket server cannot compute."""


@dataclass(frozen=True)
class ModelConfig:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_length: int
    vocab: int
    norm_eps: float
    rope_theta: float
    eos_ids: tuple[int, ...]
    dtype: torch.dtype = torch.float32  # of the arithmetic; logits leave as float32


@dataclass(frozen=True)
class LayerWeights:
    """In the model's ``dtype``; ``qkv`` [(H + 2 Hkv) D, hidden] and ``gate_up`` [2 F, hidden] are fused."""

    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor
    norm_in: Tensor
    norm_mlp: Tensor


@dataclass(frozen=True)
class Weights:
    embed: Tensor  # [V, hidden]
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor  # [V, hidden]


class Cache:
    """Keys and values of ``slots`` sequences: [layers, slots, Hkv, T, D]."""

    def __init__(self, config: ModelConfig, slots: int, length: int) -> None:
        shape = (config.layers, slots, config.kv_heads, length, config.head_dim)
        self.keys = torch.zeros(shape, dtype=config.dtype)
        self.values = torch.zeros(shape, dtype=config.dtype)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first ``length`` positions of one slot to another."""
        self.keys[:, target, :, :length] = self.keys[:, source, :, :length]
        self.values[:, target, :, :length] = self.values[:, source, :, :length]


class Forward:
    """Computes logits; holds the rotary tables."""

    def __init__(self, config: ModelConfig, length: int) -> None:
        self.config = config
        exponents = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        angles = torch.arange(length).float()[:, None] / config.rope_theta**exponents  # [T, D/2]
        self._cos = angles.cos().repeat(1, 2).to(config.dtype)
        # The sign of rotate_half is included.
        self._sin = torch.cat((-angles.sin(), angles.sin()), dim=1).to(config.dtype)

    @torch.inference_mode()
    def __call__(
        self,
        weights: Weights,
        cache: Cache,
        tokens: Tensor,
        start: Tensor,
        slots: Tensor | slice,
        last: Tensor | None,
    ) -> Tensor:
        """Logits (float32) for new tokens, whose keys and values go into the cache.

        ``tokens`` [B, Q], ``start`` [B] = tokens already in the slot, ``slots`` B slots, a slice
        when they are neighbours, which saves a copy of the cache. With ``last`` [B] only that
        query of each row is projected: [B, V]; without: [B, Q, V].
        """
        config = self.config
        rows, queries = tokens.shape
        positions = start[:, None] + torch.arange(queries)  # [B, Q]
        cos, sin = self._cos[positions][:, :, None], self._sin[positions][:, :, None]  # [B, Q, 1, D]
        length = int(positions.max()) + 1
        visible = (torch.arange(length) <= positions[:, :, None])[:, None]  # [B, 1, Q, length]
        row_index = (torch.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots)[:, None]
        rotated = config.heads + config.kv_heads
        x = weights.embed[tokens]
        for index, layer in enumerate(weights.layers):
            keys, values = cache.keys[index], cache.values[index]
            h = functional.rms_norm(x, (config.hidden,), layer.norm_in, config.norm_eps)
            qkv = functional.linear(h, layer.qkv).view(
                rows, queries, rotated + config.kv_heads, config.head_dim
            )
            qk = qkv[:, :, :rotated]
            qk = qk * cos + qk.roll(config.head_dim // 2, dims=-1) * sin
            keys[row_index, :, positions] = qk[:, :, config.heads :]
            values[row_index, :, positions] = qkv[:, :, rotated:]
            attended = functional.scaled_dot_product_attention(
                qk[:, :, : config.heads].transpose(1, 2),
                keys[slots, :, :length],
                values[slots, :, :length],
                attn_mask=visible,
                enable_gqa=config.heads != config.kv_heads,
            )
            x = x + functional.linear(attended.transpose(1, 2).reshape(rows, queries, -1), layer.out)
            h = functional.rms_norm(x, (config.hidden,), layer.norm_mlp, config.norm_eps)
            gate, up = functional.linear(h, layer.gate_up).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, layer.down)
        if last is not None:
            x = x[torch.arange(rows), last]
        return functional.linear(
            functional.rms_norm(x, (config.hidden,), weights.norm, config.norm_eps), weights.head
        ).float()


def load_model(path: Path, dtype: torch.dtype = torch.float32) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Configuration and float32 tensors by their names in the file; ``dtype`` is what they will be
    computed in. Raises UnsupportedModel."""
    settings = json.loads((path / "config.json").read_text())
    if settings.get("model_type") != "llama":
        raise UnsupportedModel(
            f"{path} is a {settings.get('model_type')} model, the pocket server computes llama"
        )
    rope = settings.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default" or settings.get("rope_scaling"):
        raise UnsupportedModel(f"{path} scales its rotary positions, which the pocket server does not")
    if settings.get("attention_bias") or settings.get("mlp_bias"):
        raise UnsupportedModel(f"{path} has biases, which the pocket server does not compute")
    eos = settings.get("eos_token_id")
    config = ModelConfig(
        hidden=settings["hidden_size"],
        layers=settings["num_hidden_layers"],
        heads=settings["num_attention_heads"],
        kv_heads=settings["num_key_value_heads"],
        head_dim=settings["head_dim"],
        max_length=settings["max_position_embeddings"],
        vocab=settings["vocab_size"],
        norm_eps=settings["rms_norm_eps"],
        rope_theta=rope.get("rope_theta") or settings.get("rope_theta", 10_000.0),
        eos_ids=tuple(eos) if isinstance(eos, list) else (eos,),
        dtype=dtype,
    )
    tensors: dict[str, Tensor] = {}
    for file in sorted(path.glob("*.safetensors")):
        tensors |= {name: value.float() for name, value in load_file(file).items()}
    return config, tensors


def assemble(config: ModelConfig, tensors: dict[str, Tensor]) -> Weights:
    """Fuse the named tensors of a checkpoint into what ``Forward`` reads, in the model's ``dtype``."""
    tensors = {name: value.to(config.dtype) for name, value in tensors.items()}
    layers = []
    for index in range(config.layers):
        block = f"model.layers.{index}"
        attention, mlp = f"{block}.self_attn", f"{block}.mlp"
        layers.append(
            LayerWeights(
                qkv=torch.cat([tensors[f"{attention}.{name}_proj.weight"] for name in "qkv"]),
                out=tensors[f"{attention}.o_proj.weight"],
                gate_up=torch.cat([tensors[f"{mlp}.{name}_proj.weight"] for name in ("gate", "up")]),
                down=tensors[f"{mlp}.down_proj.weight"],
                norm_in=tensors[f"{block}.input_layernorm.weight"],
                norm_mlp=tensors[f"{block}.post_attention_layernorm.weight"],
            )
        )
    embed = tensors["model.embed_tokens.weight"]
    return Weights(
        embed=embed,
        layers=tuple(layers),
        norm=tensors["model.norm.weight"],
        head=tensors.get("lm_head.weight", embed),
    )
