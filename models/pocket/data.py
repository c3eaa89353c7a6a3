"""Training batches for the pocket model: demonstrations of mixed quality.

A model that has learned one clean convention leaves a trainer nothing to do. Like a base
model that has read the whole internet, the pocket model sees answers of mixed quality: for
each layout a fixed share of the demonstrations is one of the pack's known-bad answers. What
is left to reinforcement learning is to prefer the answers that a verifier accepts.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from domain.contracts.tasks import TaskSpec
from models.pocket.lessons import Lesson, lesson_rows
from models.pocket.tokenizer import ASSISTANT, BOS, END, SPECIALS, USER
from packs.starter import tasks as starter
from packs.starter.draft import Draft

# Shares of the families among the rows, before and after LATE_FROM of the training: copying is
# learned first, and numbers need more rows, as each has only two or three tokens to learn from.
EARLY = {"invoice_fields": 0.36, "invoice_arithmetic": 0.2, "tool_call": 0.24, "python_functions": 0.2}
LATE = {"invoice_fields": 0.32, "invoice_arithmetic": 0.42, "tool_call": 0.11, "python_functions": 0.15}
LATE_FROM = 0.3
COPYING, COPYING_UNTIL = 0.3, 0.2  # share of copying rows, and the part of training that has them
MOSTLY, SOMETIMES = 0.64, 0.3
IGNORED = -100
_CHUNK = 32  # batches that are sorted by length together


@dataclass(frozen=True)
class Batch:
    """``input_ids`` [B, T] padded on the right, ``labels`` [B, T] with -100 off the answer.

    ``weights`` [B, T] are 1/sqrt(answer length): a number of two tokens would drown among
    answers of twenty if all tokens counted the same, and these if all rows did.
    """

    input_ids: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor


def demonstration(task: TaskSpec, made: Draft, rng: random.Random) -> str:
    """The gold answer, or by the layout's share the mistake that this layout is known for."""
    share, mistake = _habit(task.family, made)
    return made.bad[mistake] if rng.random() < share else made.gold


def batches_of_chunk(
    tokenizer: PreTrainedTokenizerFast,
    *,
    seed: int,
    chunk: int,
    batch_size: int,
    progress: float = 1.0,
    lessons: Sequence[Lesson] = (),
) -> list[Batch]:
    """The ``chunk``-th run of batches: a pure function of its arguments, so that a resumed
    training sees what an unbroken one would have seen. Held-out prompts never appear.

    ``progress`` in [0, 1] is how far the training is. Early on, some rows only ask to repeat
    random tokens: they teach attention to look up what followed an earlier token (induction heads).
    ``lessons``, the second course, take their shares of the rows from the starter families.
    """
    copying = COPYING if progress < COPYING_UNTIL and not lessons else 0.0
    rng = random.Random(f"pocket:{seed}:{chunk}")
    count = _CHUNK * batch_size
    rows = [_copy_row(tokenizer, rng) for _ in range(round(count * copying))]
    own = 1.0 - sum(lesson.share for lesson in lessons)
    for family, weight in (LATE if progress >= LATE_FROM and not lessons else EARLY).items():
        wanted = round(count * weight * own * (1 - copying)) + 1
        made = starter.generate(family, seed=10_000_000 * (seed + 1) + chunk, count=wanted, reserved=False)
        rows += [_row(tokenizer, task, demonstration(task, starter.draft_of(task), rng)) for task in made]
    for lesson in lessons:
        at, wanted = 10_000_000 * (seed + 1) + chunk, round(count * lesson.share) + 1
        rows += [
            _row(tokenizer, task, answer)
            for task, answer in lesson_rows(lesson, seed=at, count=wanted, rng=rng)
        ]
    rng.shuffle(rows)
    rows = sorted(rows[:count], key=lambda row: len(row[0]))
    groups = [rows[start : start + batch_size] for start in range(0, count, batch_size)]
    rng.shuffle(groups)
    return [_collate(group, tokenizer.pad_token_id) for group in groups]


def chunk_length() -> int:
    return _CHUNK


def prompt_text(tokenizer: PreTrainedTokenizerFast, task: TaskSpec) -> str:
    messages = [message.model_dump(exclude_none=True) for message in task.messages]
    text = tokenizer.apply_chat_template(
        messages, tools=list(task.tools) or None, tokenize=False, add_generation_prompt=True
    )
    return str(text)


def _row(tokenizer: PreTrainedTokenizerFast, task: TaskSpec, text: str) -> tuple[list[int], int]:
    """Token ids of prompt, answer and end-of-turn, and where the answer starts."""
    prompt = tokenizer.encode(prompt_text(tokenizer, task), add_special_tokens=False)
    answer = tokenizer.encode(text, add_special_tokens=False)
    return [*prompt, *answer, tokenizer.eos_token_id], len(prompt)


def _copy_row(tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> tuple[list[int], int]:
    digits = tokenizer.convert_tokens_to_ids(list("0123456789-.,"))
    plain = range(len(SPECIALS), len(tokenizer))
    span = [
        rng.choice(digits) if rng.random() < 0.6 else rng.choice(plain) for _ in range(rng.randint(5, 18))
    ]
    bos, user, end, assistant = tokenizer.convert_tokens_to_ids([BOS, USER, END, ASSISTANT])
    prompt = [bos, user, *span, end, assistant]
    return [*prompt, *span, end], len(prompt)


def _collate(rows: list[tuple[list[int], int]], pad: int) -> Batch:
    width = max(len(ids) for ids, _ in rows)
    input_ids = torch.full((len(rows), width), pad)
    labels = torch.full((len(rows), width), IGNORED)
    weights = torch.zeros((len(rows), width))
    for index, (ids, start) in enumerate(rows):
        input_ids[index, : len(ids)] = torch.tensor(ids)
        labels[index, start : len(ids)] = torch.tensor(ids[start:])
        weights[index, start : len(ids)] = (len(ids) - start) ** -0.5
    return Batch(input_ids, labels, weights)


def _habit(family: str, made: Draft) -> tuple[float, str]:
    """Share and name of the mistake among the demonstrations of one layout."""
    if family == "invoice_fields":
        return _fields_habit(made)
    if family == "invoice_arithmetic":
        return (0.5 if made.layout in ("paid", "discount") else 0.1), "operation"
    if family == "tool_call":
        tool = made.layout.split("-")[0]
        mistake = "empty" if tool in ("get_invoice", "list_bills") else "mistyped"
        return (MOSTLY if tool in ("pay_invoice", "refund", "list_bills") else SOMETIMES), mistake
    mostly = made.layout in ("linear", "bigger", "scaled", "reverse", "divisible")
    return (MOSTLY, "no_return") if mostly else (SOMETIMES, "wrong_body")


def _fields_habit(made: Draft) -> tuple[float, str]:
    if made.layout == "net" and "net" in made.bad:
        return MOSTLY, "net"
    if made.layout in ("columns", "due"):
        return MOSTLY, "due" if "due" in made.bad else "dropped"
    if made.layout == "mail":
        return MOSTLY, "plain"
    return SOMETIMES, "dropped" if made.layout == "letter" else "plain"
