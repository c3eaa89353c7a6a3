"""What the pocket model learns of other packs: their simplest families, in a second course.

The first course teaches the starter pack from nothing (``data.py``). The second goes on from its
weights with the same starter families and, beside them, these; so what was learned is kept.
"""

import hashlib
import random
from dataclasses import dataclass

from domain.contracts.tasks import TaskSpec
from packs.registry import pack_named

MOSTLY, SOMETIMES = 0.6, 0.25  # shares of the mistake, by layout


@dataclass(frozen=True)
class Lesson:
    """One family of another pack. ``share`` of all rows of the second course are its own; where
    ``mistake`` is named, that known-bad answer is what some demonstrations show instead."""

    pack: str
    family: str
    share: float
    mistake: str = ""


LESSONS = (
    Lesson("modelling", "part_block", 0.06, mistake="unnamed"),
    Lesson("coding", "sql_simple", 0.09, mistake="everything"),
    Lesson("finance", "balance_check", 0.09, mistake="sign"),
    Lesson("code_standards", "style_simple", 0.08, mistake="unchanged"),
    Lesson("support", "ticket_routing", 0.05, mistake="all_queues"),
    Lesson("knowledge", "minutes_label", 0.05, mistake="all"),
)


def lesson_rows(lesson: Lesson, *, seed: int, count: int, rng: random.Random) -> list[tuple[TaskSpec, str]]:
    """``count`` tasks with the demonstration that is shown for each. Held-out tasks never appear."""
    tasks = pack_named(lesson.pack).generate(lesson.family, seed=seed, count=count, reserved=False)
    return [(task, _demonstration(lesson, task, rng)) for task in tasks]


def _demonstration(lesson: Lesson, task: TaskSpec, rng: random.Random) -> str:
    """The gold answer, or by the layout's share the mistake that some layouts are known for."""
    pack = pack_named(lesson.pack)
    gold = pack.gold_answer(task)
    bad = {name: text for name, text in pack.bad_answers(task).items() if isinstance(text, str) and text}
    if not isinstance(gold, str):
        raise ValueError(f"{lesson.family} is no family of single answers")
    first = task.source.partition("/")[0]
    layout = f"{task.family}/{task.source if first in ('', task.family) else first}"
    often = hashlib.sha256(layout.encode()).digest()[0] % 2 == 0
    names = [lesson.mistake] if lesson.mistake in bad else sorted(bad)
    if names and rng.random() < (MOSTLY if often else SOMETIMES):
        return bad[names[hashlib.sha256(layout.encode()).digest()[1] % len(names)]]
    return gold
