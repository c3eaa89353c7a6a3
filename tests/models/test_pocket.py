"""The committed model, its tokenizer, and the data it was trained on."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.pocket.data import IGNORED, batches_of_chunk, prompt_text
from models.pocket.tokenizer import END, PAD, load_tokenizer
from packs.starter.tasks import families, generate, gold_answer, is_reserved

WEIGHTS = Path(__file__).parents[2] / "models" / "pocket" / "weights"
TOKENIZER = load_tokenizer(WEIGHTS)


def test_weights_are_small_half_precision_and_of_the_promised_size() -> None:
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS)

    assert 1_000_000 <= model.num_parameters() <= 3_000_000
    assert model.dtype == torch.float16
    assert sum(file.stat().st_size for file in WEIGHTS.iterdir()) < 8_000_000


def test_padding_is_not_the_end_of_a_turn() -> None:
    settings = json.loads((WEIGHTS / "config.json").read_text())

    assert settings["pad_token_id"] == TOKENIZER.convert_tokens_to_ids(PAD)
    assert settings["eos_token_id"] == TOKENIZER.convert_tokens_to_ids(END)
    assert settings["pad_token_id"] != settings["eos_token_id"]


def test_every_digit_is_a_token() -> None:
    assert [TOKENIZER.decode([i]) for i in TOKENIZER.encode("INV-2041")][-4:] == ["2", "0", "4", "1"]


@pytest.mark.parametrize("text", ["Grüße, 12.50 €", "a\n  b\tc", "東京 🙂", ""])
def test_any_text_survives_the_tokenizer(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_a_second_turn_only_adds_to_the_first() -> None:
    first = [{"role": "user", "content": "a"}]
    second = [*first, {"role": "assistant", "content": "b"}, {"role": "tool", "content": "c"}]

    asked = TOKENIZER.apply_chat_template(first, tokenize=False, add_generation_prompt=True)
    went_on = TOKENIZER.apply_chat_template(second, tokenize=False, add_generation_prompt=True)

    assert went_on == f"{asked}b<|end|><|tool|>c<|end|><|assistant|>"


@pytest.mark.parametrize("family", [family.name for family in families()])
def test_prompts_and_answers_are_short(family: str) -> None:
    for task in generate(family, seed=4, count=200):
        assert len(TOKENIZER.encode(prompt_text(TOKENIZER, task))) <= 80
        assert len(TOKENIZER.encode(gold_answer(task))) <= 30


def test_transformers_load_the_tokenizer_by_its_folder() -> None:
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)

    assert tokenizer.encode("Total 5") == TOKENIZER.encode("Total 5")
    assert tokenizer.chat_template == TOKENIZER.chat_template


def test_batches_are_a_function_of_their_arguments() -> None:
    one, two, other = (batches_of_chunk(TOKENIZER, seed=0, chunk=chunk, batch_size=4) for chunk in (3, 3, 4))

    assert all(torch.equal(a.input_ids, b.input_ids) for a, b in zip(one, two, strict=True))
    assert not all(torch.equal(a.input_ids, b.input_ids) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("progress", [0.0, 1.0])
def test_labels_cover_the_answer_and_its_end_only(progress: float) -> None:
    end = TOKENIZER.eos_token_id
    assistant = TOKENIZER.convert_tokens_to_ids("<|assistant|>")

    for batch in batches_of_chunk(TOKENIZER, seed=0, chunk=1, batch_size=4, progress=progress):
        for ids, labels, weights in zip(batch.input_ids, batch.labels, batch.weights, strict=True):
            start = int((ids == assistant).nonzero()[-1]) + 1
            stop = int((labels != IGNORED).nonzero()[-1])
            assert (labels[:start] == IGNORED).all()
            assert torch.equal(labels[start : stop + 1], ids[start : stop + 1])
            assert labels[stop] == end
            assert (ids[stop + 1 :] == TOKENIZER.pad_token_id).all()
            assert torch.equal(weights > 0, labels != IGNORED)


def test_reserved_prompts_are_not_trained_on() -> None:
    reserved = {
        prompt_text(TOKENIZER, task)
        for seed in range(10_000_000, 10_000_004)
        for task in generate("invoice_arithmetic", seed=seed, count=150)
        if is_reserved(task)
    }

    seen = {
        TOKENIZER.decode(ids).split("<|assistant|>")[0] + "<|assistant|>"
        for chunk in range(4)
        for batch in batches_of_chunk(TOKENIZER, seed=0, chunk=chunk, batch_size=8)
        for ids in batch.input_ids
    }

    assert reserved
    assert not reserved & seen
