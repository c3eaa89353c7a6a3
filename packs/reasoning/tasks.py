"""The pack's tasks: one entry of a data set each, made by reasoning-gym itself.

A task is a function of data set, seed and index: the entry is number 0 of the data set made with a seed
drawn from all three.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.contracts.tasks import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from packs.reasoning.catalogue import DATA_SETS
from packs.reasoning.entries import Entry, entry
from packs.reasoning.wrong import wrong_answers
from packs.registry import Pack, PackFamily

PREFIX = "rg_"
FAMILIES = tuple(
    PackFamily(f"{PREFIX}{one.name}", one.title, f"{one.asks} ({one.area})", ("scorer",)) for one in DATA_SETS
)
MAX_TOKENS = 1024
# Where the default makes tasks that take minutes to make or to solve, or pages of text.
CONFIG: Mapping[str, Mapping[str, Any]] = {
    "rush_hour": {"max_moves": 12},
}
_ASK = "Give the result alone, or put it between <answer> and </answer>."
_NOTES = {
    "propositional_logic": "The conclusion must need at least two of the statements, be no tautology and "
    "use at most three letters.",
    "rush_hour": "Every move must be possible as far as it is said.",
}
# The known answer is the only one, so that a stricter judge may compare with it.
_ONE_ANSWER = frozenset(
    (
        "ab", "acre", "aiw", "arc_1d", "base_conversion", "basic_arithmetic", "bf",
        "binary_alternation", "binary_matrix", "caesar_cipher", "count_bits", "count_primes",
        "course_schedule", "emoji_mystery", "family_relationships", "game_of_life_halting", "gcd",
        "isomorphic_strings", "largest_island", "lcm", "leg_counting", "letter_counting",
        "list_functions", "mahjong_puzzle", "maze", "number_filtering", "ransom_note",
        "rotten_oranges", "rotate_matrix", "self_reference", "simple_geometry", "spiral_matrix",
        "string_insertion", "string_splitting", "string_synthesis", "syllogism",
        "word_sequence_reversal",
    )
)  # fmt: skip


def generate(family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
    """``count`` tasks with distinct questions, the same for the same arguments.

    Raises KeyError for an unknown family, ValueError when it runs out of distinct questions.
    """
    name = _dataset(family)
    tasks: list[TaskSpec] = []
    seen: set[str] = set()
    for index in range(40 * count + 100):
        if len(tasks) == count:
            break
        made = _entry(name, _seed(name, seed, index))
        if made is None or made.question in seen:
            continue
        seen.add(made.question)
        if reserved is None or _is_reserved(made.question) == reserved:
            tasks.append(_task(name, seed, index, *made))
    if len(tasks) < count:
        raise ValueError(f"{family} has fewer than {count} distinct questions at seed {seed}")
    return tasks


def gold_answer(task: TaskSpec) -> str:
    """An answer that passes. Raises ValueError for a task that this pack did not make."""
    return _made_again(task).answer


def bad_answers(task: TaskSpec) -> dict[str, str]:
    """Answers that must fail, by the name of the mistake. Raises as ``gold_answer``."""
    made = _made_again(task)
    return wrong_answers(made.question, made.answer)


def _task(name: str, seed: int, index: int, question: str, known: str, digest: str) -> TaskSpec:
    note = f"\n{_NOTES[name]}" if name in _NOTES else ""
    reference = {
        "dataset": name,
        "seed": _seed(name, seed, index),
        "config": dict(CONFIG.get(name, {})),
        "entry": digest,
        "answer": known,
    }
    hidden = None
    if name in _ONE_ANSWER:
        exact = VerifierSpec(kind="exact", params={"normalize": True})
        hidden = HiddenCheck(verifier=exact, reference=known)
    return TaskSpec(
        id=f"reasoning.{name}.{seed}.{index}",
        family=f"{PREFIX}{name}",
        messages=(ChatMessage(role="user", content=f"{question}{note}\n{_ASK}"),),
        verifier=VerifierSpec(kind="scorer"),
        reference=reference,
        hidden=hidden,
        source=name,
        max_tokens=MAX_TOKENS,
    )


def _made_again(task: TaskSpec) -> Entry:
    words = task.id.split(".")
    if len(words) != 4 or words[0] != "reasoning" or not (words[2].isdecimal() and words[3].isdecimal()):
        raise ValueError(f"task {task.id!r} is not from the reasoning pack")
    made = _entry(words[1], _seed(words[1], int(words[2]), int(words[3])))
    if made is None:
        raise ValueError(f"task {task.id!r} has no known answer")
    return made


def _entry(name: str, seed: int) -> Entry | None:
    return entry(name, seed, CONFIG.get(name, {}))


def _dataset(family: str) -> str:
    name = family.removeprefix(PREFIX)
    if not family.startswith(PREFIX) or name not in {one.name for one in DATA_SETS}:
        raise KeyError(family)
    return name


def _seed(name: str, seed: int, index: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{name}:{seed}:{index}".encode()).digest()[:4], "big") >> 1


def _is_reserved(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] % 8 == 0


PACK = Pack(
    name="reasoning",
    title="Procedural reasoning",
    description="The procedural data sets of reasoning-gym, each judged by its own scorer in a sandbox.",
    families=FAMILIES,
    generate=generate,
    gold_answer=gold_answer,
    bad_answers=bad_answers,
    folder=str(Path(__file__).parent),
)
