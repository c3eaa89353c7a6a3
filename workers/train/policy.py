"""The model being trained: a frozen base with one LoRA adapter, and the reference beside it.

Only what an engine can load at run time is trained: LoRA on the linear layers of the blocks.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from domain.contracts.training import LORA_TARGETS, TrainConfig
from workers.context import UnitRefused
from workers.train.batch import Pack

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
transformers_logging.disable_progress_bar()

_TRAINED, _REFERENCE = "default", "reference"


class AdapterRefused(UnitRefused):
    """An adapter that the engines cannot load at run time."""


@dataclass(frozen=True)
class TokenScores:
    """Of each trained token of a pack: log-probability (with gradient) and, without, the entropy
    in nats of the distribution it was drawn from."""

    logp: Tensor  # [N]
    entropy: Tensor  # [N]


class Policy:
    """Trainable adapter over the base model in ``base``; float32.

    ``init_adapter`` is a PEFT folder to continue from. It then is the reference too, as a frozen
    copy; otherwise the reference is the base model with its adapter off.
    """

    def __init__(self, base: str | Path, config: TrainConfig, *, init_adapter: Path | None = None) -> None:
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, local_files_only=True)
        model.config.use_cache = False
        lora = _lora_config(config) if init_adapter is None else _read_lora_config(init_adapter)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model: PeftModel = get_peft_model(model, lora)
        self._has_reference_adapter = init_adapter is not None
        if init_adapter is not None:
            weights = load_file(init_adapter / ADAPTER_WEIGHTS)
            self.model.add_adapter(_REFERENCE, _read_lora_config(init_adapter))
            _set_weights(self.model, weights, _REFERENCE)
            _set_weights(self.model, weights, _TRAINED)
            self.model.set_adapter(_TRAINED)
        self._base_name = Path(base).name
        self._fresh = self.adapter_weights()
        self.model.eval()  # LoRA dropout is 0; eval keeps it so whatever a base brings along

    def parameters(self) -> dict[str, nn.Parameter]:
        """The trained parameters by name, in a fixed order."""
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    def score(self, pack: Pack, *, temperature: float, chunk: int) -> TokenScores:
        """Score the N trained tokens of ``pack`` at ``temperature``. Logits exist for at most
        ``chunk`` tokens at once and are computed again in the backward pass."""
        network = self.model.get_base_model()
        hidden = network.get_decoder()(
            input_ids=pack.input_ids[None],
            position_ids=pack.position_ids[None],
            attention_mask=pack.visible[None, None],
            use_cache=False,
        ).last_hidden_state[0]
        head = network.get_output_embeddings()
        logp, entropy = [], []
        for source, target in zip(
            torch.split(pack.source, chunk), torch.split(pack.target, chunk), strict=True
        ):
            part = checkpoint(_head_scores, head, hidden[source], target, temperature, use_reentrant=False)
            logp.append(part[0])
            entropy.append(part[1])
        return TokenScores(logp=torch.cat(logp), entropy=torch.cat(entropy))

    @torch.no_grad()
    def reference_logp(self, pack: Pack, *, temperature: float, chunk: int) -> Tensor:
        """The same tokens' log-probabilities under the reference. [N]"""
        if not self._has_reference_adapter:
            with self.model.disable_adapter():
                return self.score(pack, temperature=temperature, chunk=chunk).logp
        self.model.set_adapter(_REFERENCE, inference_mode=True)
        try:
            return self.score(pack, temperature=temperature, chunk=chunk).logp
        finally:
            self.model.set_adapter(_TRAINED)

    def adapter_weights(self) -> bytes:
        """The adapter as safetensors bytes in PEFT's layout; equal weights give equal bytes."""
        state = get_peft_model_state_dict(self.model, adapter_name=_TRAINED)
        return bytes(save_tensors({name: value.detach().contiguous() for name, value in state.items()}))

    def load_adapter_weights(self, data: bytes) -> None:
        _set_weights(self.model, load_tensors(data), _TRAINED)

    def reset(self) -> None:
        """Back to the adapter this policy began with."""
        self.load_adapter_weights(self._fresh)

    def adapter_config(self) -> bytes:
        """``adapter_config.json`` with sorted keys and lists, so that its digest is stable."""
        values: dict[str, Any] = self.model.peft_config[_TRAINED].to_dict()
        values = {key: sorted(item) if isinstance(item, set) else item for key, item in values.items()}
        values |= {"base_model_name_or_path": self._base_name, "inference_mode": True}
        return json.dumps(values, sort_keys=True, indent=1, default=str).encode()


def _head_scores(
    head: nn.Module, hidden: Tensor, target: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """[C, D], [C] -> log-probability of the target [C], entropy [C] without gradient."""
    scores = torch.log_softmax(head(hidden).float() / temperature, dim=-1)
    with torch.no_grad():
        entropy = -(scores.exp() * scores).sum(-1)
    return scores.gather(-1, target[:, None])[:, 0], entropy


def _lora_config(config: TrainConfig) -> LoraConfig:
    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=0.0,
        target_modules=list(config.lora_targets),
        bias="none",
        task_type="CAUSAL_LM",
    )


def _read_lora_config(folder: Path) -> LoraConfig:
    """The adapter's own rank and targets; raises ``AdapterRefused`` for what an engine cannot load."""
    values = json.loads((folder / ADAPTER_CONFIG).read_text())
    targets = values.get("target_modules")
    problems = [
        reason
        for reason, found in {
            "it is not LoRA": values.get("peft_type") != "LORA",
            "it uses DoRA": bool(values.get("use_dora")),
            "it trains biases": values.get("bias", "none") != "none",
            "it replaces whole modules": bool(values.get("modules_to_save")),
            "it scales ranks by pattern": bool(values.get("rank_pattern") or values.get("alpha_pattern")),
            "it targets other layers than the blocks' linear ones": not isinstance(targets, list)
            or not set(targets) <= set(LORA_TARGETS),
        }.items()
        if found
    ]
    if problems:
        raise AdapterRefused(f"this adapter cannot be continued: {'; '.join(problems)}")
    return LoraConfig(
        r=values["r"],
        lora_alpha=values["lora_alpha"],
        lora_dropout=0.0,
        target_modules=sorted(targets),
        bias="none",
        use_rslora=bool(values.get("use_rslora")),
        task_type="CAUSAL_LM",
    )


def _set_weights(model: PeftModel, weights: dict[str, Tensor], name: str) -> None:
    found = set_peft_model_state_dict(model, weights, adapter_name=name)
    if found.unexpected_keys:
        raise AdapterRefused(f"the base model has no place for {found.unexpected_keys[0]}")
    missing = [key for key in found.missing_keys if f".{name}." in key]
    if missing:
        raise AdapterRefused(f"the adapter lacks {missing[0]}")
