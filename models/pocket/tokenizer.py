"""The pocket model's tokenizer: byte-level BPE, every digit a token, and its chat template.

``<|pad|>`` and ``<|end|>`` are different tokens: a model whose pad is its end-of-turn learns
never to stop, because the loss mask hides the token that it should learn.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

BOS, SYSTEM, USER, ASSISTANT, TOOL, END, PAD = (
    "<|bos|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool|>",
    "<|end|>",
    "<|pad|>",
)
SPECIALS = (PAD, BOS, END, SYSTEM, USER, ASSISTANT, TOOL)
VOCAB_SIZE = 1024
MAX_LENGTH = 512

# Nothing stands between two turns, so a history of sampled tokens is a prefix of the next prompt.
CHAT_TEMPLATE = (
    "{{ '<|bos|>' }}"
    "{% if tools %}{{ '<|system|>Tools: ' }}"
    "{% for tool in tools %}{% set f = tool.function if tool.function is defined else tool %}"
    "{{ f.name }}({{ f.parameters.properties | join(', ') }}){{ '' if loop.last else '; ' }}"
    "{% endfor %}{{ '<|end|>' }}{% endif %}"
    "{% for message in messages %}"
    "{{ '<|' + message.role + '|>' + (message.content or '') + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=END,
        pad_token=PAD,
        model_max_length=MAX_LENGTH,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="right",
    )


def load_tokenizer(path: Path | str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(path)
