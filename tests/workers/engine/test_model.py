"""The server's own forward pass, and merged adapters, against transformers and peft."""

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from workers.engine.adapters import AdapterRefused, merged
from workers.engine.model import Cache, Forward, UnsupportedModel, assemble, load_model

LENGTH = 48


@pytest.fixture(scope="module")
def oracle() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
        initializer_range=0.2,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def folder(oracle: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    oracle.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def adapter(oracle: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A peft adapter on every linear layer, and in ``logits.pt`` what the adapted oracle answers."""
    path = tmp_path_factory.mktemp("adapter")
    model = LlamaForCausalLM(oracle.config).eval()
    model.load_state_dict(oracle.state_dict())
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    adapted = get_peft_model(
        model, LoraConfig(r=4, lora_alpha=6, target_modules=targets, task_type="CAUSAL_LM")
    )
    torch.manual_seed(1)
    for name, value in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.3)
    adapted.save_pretrained(path)
    with torch.no_grad():
        torch.save(adapted(_tokens(1, 20)).logits, path / "logits.pt")
    return path


def _tokens(rows: int, count: int) -> torch.Tensor:
    return torch.randint(3, 50, (rows, count), generator=torch.Generator().manual_seed(5))


def _start(*lengths: int) -> torch.Tensor:
    return torch.tensor(lengths)


def test_logits_are_those_of_transformers(oracle: LlamaForCausalLM, folder: Path) -> None:
    config, tensors = load_model(folder)
    tokens = _tokens(3, 20)

    logits = Forward(config, LENGTH)(
        assemble(config, tensors), Cache(config, 3, LENGTH), tokens, _start(0, 0, 0), slice(0, 3), None
    )

    assert torch.allclose(logits, oracle(tokens).logits, atol=1e-4)


def test_rows_of_unequal_length_see_only_their_own_tokens(oracle: LlamaForCausalLM, folder: Path) -> None:
    config, tensors = load_model(folder)
    weights, forward, cache = assemble(config, tensors), Forward(config, LENGTH), Cache(config, 4, LENGTH)
    tokens = _tokens(2, 12)
    first = tokens.clone()
    first[0, 7:] = 0  # the first row has only seven tokens; the rest is padding

    at_end = forward(weights, cache, first, _start(0, 0), torch.tensor([3, 1]), torch.tensor([6, 11]))
    step = forward(weights, cache, tokens[:, 7:8], _start(7, 12), torch.tensor([3, 1]), None)

    expected = oracle(tokens).logits
    assert torch.allclose(at_end, torch.stack([expected[0, 6], expected[1, 11]]), atol=1e-4)
    assert torch.allclose(step[0, 0], expected[0, 7], atol=1e-4)


def test_a_copied_slot_continues_like_its_source(folder: Path) -> None:
    config, tensors = load_model(folder)
    weights, forward, cache = assemble(config, tensors), Forward(config, LENGTH), Cache(config, 2, LENGTH)
    tokens = _tokens(1, 9)
    forward(weights, cache, tokens[:, :8], _start(0), slice(0, 1), None)

    cache.copy(0, 1, 8)
    both = forward(weights, cache, tokens[:, 8:].expand(2, 1), _start(8, 8), slice(0, 2), None)

    assert torch.allclose(both[0], both[1], atol=1e-6)


def test_a_merged_adapter_computes_what_peft_computes(folder: Path, adapter: Path) -> None:
    config, tensors = load_model(folder)

    logits = Forward(config, LENGTH)(
        merged(config, tensors, adapter),
        Cache(config, 1, LENGTH),
        _tokens(1, 20),
        _start(0),
        slice(0, 1),
        None,
    )

    assert torch.allclose(logits, torch.load(adapter / "logits.pt"), atol=1e-4)


def test_merging_leaves_the_base_as_it_was(folder: Path, adapter: Path) -> None:
    config, tensors = load_model(folder)
    before = {name: value.clone() for name, value in tensors.items()}

    merged(config, tensors, adapter)

    assert all(torch.equal(before[name], tensors[name]) for name in before)


def test_a_missing_adapter_is_told_apart_from_a_broken_one(folder: Path, tmp_path: Path) -> None:
    config, tensors = load_model(folder)
    (tmp_path / "adapter_config.json").write_text("{")

    with pytest.raises(AdapterRefused) as missing:
        merged(config, tensors, tmp_path / "nowhere")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(AdapterRefused) as broken:
        merged(config, tensors, tmp_path)

    assert (missing.value.missing, broken.value.missing) == (True, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use_dora", True),
        ("bias", "all"),
        ("modules_to_save", ["lm_head"]),
        ("rank_pattern", {"q_proj": 2}),
        ("peft_type", "IA3"),
    ],
)
def test_an_adapter_that_engines_cannot_load_is_refused(
    folder: Path, adapter: Path, tmp_path: Path, key: str, value: object
) -> None:
    config, tensors = load_model(folder)
    settings = json.loads((adapter / "adapter_config.json").read_text()) | {key: value}
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
    (tmp_path / "adapter_model.safetensors").write_bytes((adapter / "adapter_model.safetensors").read_bytes())

    with pytest.raises(AdapterRefused):
        merged(config, tensors, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda lora: lora | {"base_model.model.lm_head.weight": torch.zeros(2, 2)},
        lambda lora: dict(list(lora.items())[:-1]),
        lambda lora: {name: value[..., :3].contiguous() for name, value in lora.items()},
        lambda lora: {name.replace("layers.0", "layers.9"): value for name, value in lora.items()},
        lambda lora: {},
    ],
    ids=["foreign tensor", "half a pair", "wrong shape", "unknown layer", "empty"],
)
def test_an_adapter_for_another_model_is_refused(
    folder: Path, adapter: Path, tmp_path: Path, change: object
) -> None:
    config, tensors = load_model(folder)
    (tmp_path / "adapter_config.json").write_bytes((adapter / "adapter_config.json").read_bytes())
    save_file(
        change(load_file(adapter / "adapter_model.safetensors")), tmp_path / "adapter_model.safetensors"
    )

    with pytest.raises(AdapterRefused):
        merged(config, tensors, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gpt2"},
        {"attention_bias": True},
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0}},
    ],
)
def test_a_model_that_cannot_be_computed_is_refused(
    folder: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    settings = json.loads((folder / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(settings))

    with pytest.raises(UnsupportedModel):
        load_model(tmp_path)


def test_half_precision_rounds_and_answers_in_full(folder: Path) -> None:
    logits = []
    for dtype in (torch.float32, torch.bfloat16):
        config, tensors = load_model(folder, dtype)
        weights = assemble(config, tensors)
        cache = Cache(config, 1, LENGTH)
        start, slots = torch.zeros(1, dtype=torch.long), torch.tensor([0])
        found = Forward(config, LENGTH)(weights, cache, _tokens(1, 12), start, slots, torch.tensor([11]))
        assert cache.keys.dtype == weights.head.dtype == dtype
        assert found.dtype == torch.float32
        logits.append(found)

    assert not torch.equal(*logits)
    torch.testing.assert_close(logits[1], logits[0], atol=0.2, rtol=0.05)
