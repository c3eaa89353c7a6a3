"""The starter pack's tasks and answers.

A task is a pure function of family, seed and index, and its id carries all three: the same
id is the same task everywhere, and its answers can be made again from the id alone.
"""

import hashlib
import random
from collections.abc import Callable

from domain.contracts.tasks import ChatMessage, TaskSpec, VerifierSpec
from packs.registry import Pack, PackFamily
from packs.starter import invoice_arithmetic, invoice_fields, python_functions, tool_call
from packs.starter.draft import Draft

MAX_TOKENS = 48
FAMILIES = (
    PackFamily(
        "invoice_fields",
        "Invoice fields",
        "Read a short invoice and answer with the requested fields as one JSON object.",
        ("json_fields",),
    ),
    PackFamily(
        "invoice_arithmetic",
        "Invoice arithmetic",
        "Add, subtract or multiply amounts found in a short document.",
        ("numeric",),
    ),
    PackFamily(
        "tool_call",
        "Tool calls",
        "Choose one of the offered tools and fill in its arguments.",
        ("tool_call",),
    ),
    PackFamily(
        "python_functions",
        "Python functions",
        "Write a small Python function that passes randomised calls.",
        ("python_tests",),
    ),
)
_DRAFTS: dict[str, Callable[[random.Random], Draft]] = {
    "invoice_fields": invoice_fields.draft,
    "invoice_arithmetic": invoice_arithmetic.draft,
    "tool_call": tool_call.draft,
    "python_functions": python_functions.draft,
}


def families() -> tuple[PackFamily, ...]:
    return FAMILIES


def generate(family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
    """``count`` tasks with distinct prompts, the same for the same arguments.

    ``reserved`` True keeps only prompts that the pocket model was never trained on, False only
    the others. Raises KeyError for an unknown family and ValueError when the family runs out
    of distinct prompts.
    """
    make = _DRAFTS[family]
    tasks: list[TaskSpec] = []
    seen: set[str] = set()
    for index in range(40 * count + 400):
        if len(tasks) == count:
            return tasks
        made = make(_rng(family, seed, index))
        key = _key(made)
        if key in seen or (reserved is not None and _is_reserved(key) != reserved):
            continue
        seen.add(key)
        tasks.append(_task(family, seed, index, made))
    if len(tasks) == count:
        return tasks
    raise ValueError(f"{family} has fewer than {count} distinct prompts at seed {seed}")


def gold_answer(task: TaskSpec) -> str:
    """An answer that passes. Raises ValueError for a task that this pack did not make."""
    return draft_of(task).gold


def bad_answers(task: TaskSpec) -> dict[str, str]:
    """Answers that must fail, by the name of the mistake. Raises as ``gold_answer``."""
    return draft_of(task).bad


def draft_of(task: TaskSpec) -> Draft:
    pack, _, rest = task.id.partition(".")
    family, _, place = rest.partition(".")
    seed, _, index = place.partition(".")
    if pack != "starter" or family not in _DRAFTS or not (seed.isdecimal() and index.isdecimal()):
        raise ValueError(f"task {task.id!r} is not from the starter pack")
    return _DRAFTS[family](_rng(family, int(seed), int(index)))


def is_reserved(task: TaskSpec) -> bool:
    """Whether the pocket model's training skipped this prompt: one in eight, by its hash."""
    return _is_reserved(_key(draft_of(task)))


def _task(family: str, seed: int, index: int, made: Draft) -> TaskSpec:
    return TaskSpec(
        id=f"starter.{family}.{seed}.{index}",
        family=family,
        messages=(ChatMessage(role="user", content=made.prompt),),
        verifier=VerifierSpec(kind=made.verifier, params=made.params),
        reference=made.reference,
        tools=made.tools,
        source=f"{made.layout}/{made.origin}",
        max_tokens=MAX_TOKENS,
    )


def _rng(family: str, seed: int, index: int) -> random.Random:
    return random.Random(f"{family}:{seed}:{index}")


def _key(made: Draft) -> str:
    offered = ",".join(tool["function"]["name"] for tool in made.tools)
    return f"{offered}\n{made.prompt}"


def _is_reserved(key: str) -> bool:
    return hashlib.sha256(key.encode()).digest()[0] % 8 == 0


PACK = Pack(
    name="starter",
    title="Starter families",
    families=FAMILIES,
    generate=generate,
    gold_answer=gold_answer,
    bad_answers=bad_answers,
    starter=True,
)
