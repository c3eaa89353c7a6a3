import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file
from transformers import LlamaForCausalLM

from domain.contracts.training import TrainConfig
from tests.workers.train.conftest import END, VOCAB
from workers.train.batch import Pack, Row, make_packs
from workers.train.policy import AdapterRefused, Policy

CONFIG = TrainConfig(lora_r=4)
PROMPT = (1, 7, 8, 9, 30)


def test_a_packed_group_scores_like_each_row_alone(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)
    tails = [(10, 11, END), (12, END), (13, 14, 15, 16)]

    packed = policy.score(_pack(tails), temperature=1.0, chunk=4).logp

    alone = [_plain_logp(tiny_base, tail, temperature=1.0) for tail in tails]
    torch.testing.assert_close(packed.detach(), torch.cat(alone), atol=1e-5, rtol=1e-5)


def test_scores_are_of_the_distribution_at_the_sampling_temperature(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)

    scores = policy.score(_pack([(10, 11, END)]), temperature=0.7, chunk=8).logp

    expected = _plain_logp(tiny_base, (10, 11, END), temperature=0.7)
    torch.testing.assert_close(scores.detach(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_the_chunk_size_changes_neither_scores_nor_gradients(tiny_base: Path, chunk: int) -> None:
    pack = _pack([(10, 11, END), (12, END)])

    values, gradients = [], []
    for size in (3, chunk):
        policy = Policy(tiny_base, CONFIG)
        scores = policy.score(pack, temperature=1.0, chunk=size)
        scores.logp.sum().backward()
        values.append(scores.logp.detach())
        gradients.append([p.grad for p in policy.parameters().values()])

    torch.testing.assert_close(values[0], values[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_logits_of_all_tokens_never_exist_at_once(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)
    seen: list[int] = []
    head = policy.model.get_base_model().get_output_embeddings()
    head.register_forward_hook(lambda module, inputs, output: seen.append(output.numel() // VOCAB))

    policy.score(_pack([tuple(range(10, 22))]), temperature=1.0, chunk=5).logp.sum().backward()

    assert max(seen) <= 5


def test_observation_tokens_are_seen_but_not_trained(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)
    row = _row((10, END, 33, 34, 12, END), mask=(1, 1, 0, 0, 1, 1))

    pack = make_packs([row], advantage=np.ones(1), weight=np.ones(1), pack_tokens=64)[0]

    assert pack.target.tolist() == [10, END, 12, END]
    every = _plain_logp(tiny_base, (10, END, 33, 34, 12, END), temperature=1.0)
    scores = policy.score(pack, temperature=1.0, chunk=8).logp.detach()
    torch.testing.assert_close(scores, every[[0, 1, 4, 5]], atol=1e-5, rtol=1e-5)


def test_only_block_linear_layers_are_adapted_in_the_layout_that_engines_load(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)

    names = set(load(policy.adapter_weights()))
    settings = json.loads(policy.adapter_config())

    assert "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" in names
    assert {name.split(".")[-2] for name in names} == {"lora_A", "lora_B"}
    assert not [name for name in names if "embed" in name or "lm_head" in name]
    assert len(names) == 2 * 7 * 2
    assert settings["peft_type"] == "LORA"
    assert settings["target_modules"] == sorted(settings["target_modules"])
    assert str(tiny_base) not in policy.adapter_config().decode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"bias": "all"}, "biases"),
        ({"modules_to_save": ["lm_head"]}, "whole modules"),
        ({"target_modules": ["q_proj", "embed_tokens"]}, "other layers"),
        ({"target_modules": "all-linear"}, "other layers"),
        ({"peft_type": "IA3"}, "not LoRA"),
    ],
)
def test_adapters_that_engines_cannot_load_are_refused(
    tiny_base: Path, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    folder = _saved_adapter(Policy(tiny_base, CONFIG), tmp_path)
    settings = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(settings | change))

    with pytest.raises(AdapterRefused, match=reason):
        Policy(tiny_base, CONFIG, init_adapter=folder)


@pytest.mark.parametrize("targets", [("lm_head",), ("embed_tokens", "q_proj"), ()])
def test_a_configuration_cannot_target_the_vocabulary(targets: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="LoRA targets"):
        TrainConfig(lora_targets=targets)


def test_the_reference_of_a_fresh_run_is_the_base_model(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)
    _shake(policy)

    reference = policy.reference_logp(_pack([(10, 11, END)]), temperature=1.0, chunk=8)

    expected = _plain_logp(tiny_base, (10, 11, END), temperature=1.0)
    torch.testing.assert_close(reference, expected, atol=1e-5, rtol=1e-5)


def test_reference_after_sft_is_the_sft_adapter(tiny_base: Path, tmp_path: Path) -> None:
    """trl#3194: RL after SFT must be pulled towards the SFT model, not towards the base."""
    tuned = Policy(tiny_base, CONFIG)
    _shake(tuned)
    pack = _pack([(10, 11, END)])
    sft_logp = tuned.score(pack, temperature=1.0, chunk=8).logp.detach()
    policy = Policy(tiny_base, CONFIG, init_adapter=_saved_adapter(tuned, tmp_path))
    start_logp = policy.score(pack, temperature=1.0, chunk=8).logp.detach()

    _shake(policy)
    reference = policy.reference_logp(pack, temperature=1.0, chunk=8)

    torch.testing.assert_close(start_logp, sft_logp)
    torch.testing.assert_close(reference, sft_logp)
    assert not torch.allclose(policy.score(pack, temperature=1.0, chunk=8).logp.detach(), sft_logp)
    assert all(".default." in name for name in policy.parameters())


def test_an_adapter_of_another_model_is_refused(tiny_base: Path, tmp_path: Path) -> None:
    folder = _saved_adapter(Policy(tiny_base, CONFIG), tmp_path)
    weights = load_file(folder / "adapter_model.safetensors")
    from safetensors.torch import save_file

    save_file(
        {k.replace("layers.1", "layers.7"): v for k, v in weights.items()},
        folder / "adapter_model.safetensors",
    )

    with pytest.raises(AdapterRefused):
        Policy(tiny_base, CONFIG, init_adapter=folder)


def _row(tokens: tuple[int, ...], mask: tuple[int, ...] | None = None, sample: int = 0) -> Row:
    return Row(
        task_id="t",
        family="f",
        group="g",
        sample=sample,
        policy_version=0,
        reward=1.0,
        state="passed",
        finish_reason="stop",
        prompt_ids=np.array(PROMPT),
        token_ids=np.array(tokens),
        logprobs=np.full(len(tokens), -1.0, dtype=np.float32),
        mask=np.array(mask or [1] * len(tokens), dtype=bool),
    )


def _pack(tails: list[tuple[int, ...]]) -> Pack:
    rows = [_row(tail, sample=index) for index, tail in enumerate(tails)]
    (pack,) = make_packs(rows, advantage=np.ones(len(rows)), weight=np.ones(len(rows)), pack_tokens=1000)
    return pack


def _plain_logp(base: Path, tail: tuple[int, ...], *, temperature: float) -> torch.Tensor:
    """What transformers says about the row by itself."""
    model = LlamaForCausalLM.from_pretrained(base, dtype=torch.float32)
    ids = torch.tensor([[*PROMPT, *tail]])
    with torch.no_grad():
        scores = torch.log_softmax(model(ids).logits[0, :-1] / temperature, -1)
    return scores.gather(-1, ids[0, 1:, None])[len(PROMPT) - 1 :, 0]


def _shake(policy: Policy) -> None:
    generator = torch.Generator().manual_seed(3)
    for parameter in policy.parameters().values():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)


def _saved_adapter(policy: Policy, parent: Path) -> Path:
    folder = parent / "sft"
    folder.mkdir()
    (folder / "adapter_config.json").write_bytes(policy.adapter_config())
    (folder / "adapter_model.safetensors").write_bytes(policy.adapter_weights())
    return folder
