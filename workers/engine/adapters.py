"""LoRA adapters of the pocket server: read from a PEFT folder, merged into a copy of the base.

At a million weights a merged copy costs four megabytes, and rows of one adapter then run at
the speed of the base model. A copy is never changed after it was made: a name is loaded once,
and requests that run on it keep it when it is unloaded.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from workers.engine.model import ModelConfig, Weights, assemble

TARGETS = frozenset({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})


class AdapterRefused(ValueError):
    """The adapter cannot be served; the text says why. ``missing``: there is none at the path."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True)
class Served:
    """One name under which completions are made."""

    name: str
    weights: Weights
    root: str
    parent: str | None = None


def merged(config: ModelConfig, base: dict[str, Tensor], path: Path) -> Weights:
    """Base weights plus ``scale · B A`` for every adapted matrix. Raises AdapterRefused."""
    try:
        settings = json.loads((path / "adapter_config.json").read_text())
        lora = load_file(path / "adapter_model.safetensors")
    except FileNotFoundError as error:
        raise AdapterRefused(f"no adapter found at {path}", missing=True) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise AdapterRefused(f"adapter at {path} is not readable: {error}") from error
    _check(settings)
    tensors, used = dict(base), set()
    for name in sorted(key for key in lora if key.endswith(".lora_A.weight")):
        stem = name.removesuffix(".lora_A.weight")
        down, up = lora[name].float(), lora.get(f"{stem}.lora_B.weight")  # [r, in], [out, r]
        target = stem.removeprefix("base_model.model.") + ".weight"
        if up is None or target not in base or target.split(".")[-2] not in TARGETS:
            raise AdapterRefused(f"{stem} has no counterpart in the served model")
        if (up.shape[0], down.shape[1]) != tuple(base[target].shape) or up.shape[1] != down.shape[0]:
            raise AdapterRefused(f"{stem} has the wrong shape for the served model")
        tensors[target] = base[target] + _scale(settings, down.shape[0]) * (up.float() @ down)
        used |= {name, f"{stem}.lora_B.weight"}
    if not used or used != set(lora):
        raise AdapterRefused(f"adapter holds tensors that are not LoRA pairs: {sorted(set(lora) - used)[:3]}")
    return assemble(config, tensors)


def _scale(settings: dict[str, object], rank: int) -> float:
    alpha = float(str(settings["lora_alpha"]))
    return alpha / (rank**0.5 if settings.get("use_rslora") else rank)


def _check(settings: dict[str, object]) -> None:
    if settings.get("peft_type") != "LORA":
        raise AdapterRefused(f"adapter type {settings.get('peft_type')!r} is not LORA")
    for key in ("use_dora", "modules_to_save", "alpha_pattern", "rank_pattern"):
        if settings.get(key):
            raise AdapterRefused(f"adapters with {key} are not served")
    if settings.get("bias", "none") != "none":
        raise AdapterRefused("adapters with biases are not served")
