"""Texts of any length with something to find in them: seeded, procedural, one right number each."""

import random
from typing import NamedTuple

from domain.long_context.filler import Fact, woven
from domain.long_context.questions import TASKS, Question, Task

__all__ = ["TASKS", "Fact", "Haystack", "Question", "Task", "family_of", "haystack"]


class Haystack(NamedTuple):
    """``answer`` is the number that the question at the end of ``prompt`` asks for."""

    prompt: str
    answer: int


def haystack(task: str, seed: str, *, sentences: int, depth: float) -> Haystack:
    """What ``task`` hides at the share ``depth`` of ``sentences`` of filler, then the question. Equal seeds
    with more sentences ask for the same. Raises ``KeyError`` for an unknown task."""
    asked = TASKS[task].make(random.Random(f"{seed}:facts"), depth)
    text = woven(asked.facts, sentences, random.Random(f"{seed}:filler"))
    return Haystack(prompt=f"{text}\n{asked.text}", answer=asked.answer)


def family_of(task: str) -> str:
    """The family of the cases of ``task``."""
    return f"long_context_{task}"
