"""Packs whose tasks are drawn: a task is a pure function of pack, family, seed and index.

The id carries all four (``finance.ratio.7.12``), so the same id is the same task everywhere, and its
answers can be made again from the id alone.
"""

import base64
import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.contracts.tasks import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from packs.registry import Pack, PackFamily, Solution


@dataclass(frozen=True)
class Draft:
    """One task in the making. ``gold`` passes the verifier, every solution in ``bad`` fails.

    ``layout`` and ``origin`` together name the cluster that the task belongs to: tasks that share
    them are alike, and their results are not independent. ``image`` makes a PNG that is shown after the
    prompt, ``image_key`` says in words what it shows: what is reserved must not hang on its bytes.
    """

    prompt: str
    verifier: str
    params: dict[str, Any]
    reference: Any
    gold: Solution
    bad: Mapping[str, Solution]
    layout: str
    origin: str
    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    environment_params: dict[str, Any] = field(default_factory=dict)
    hidden: HiddenCheck | None = None
    tags: dict[str, Any] = field(default_factory=dict)
    image: Callable[[], bytes] | None = None
    image_key: str = ""


@dataclass(frozen=True)
class SeededFamily:
    """A family and how one of its tasks is drawn. ``max_tokens`` bounds one turn of the model."""

    entry: PackFamily
    draw: Callable[[random.Random], Draft]
    max_tokens: int = 96


class SeededPack:
    """Generator and answers of a pack; its methods are those that a ``Pack`` asks for."""

    def __init__(self, name: str, families: Sequence[SeededFamily]) -> None:
        self.name = name
        self.families = {family.entry.name: family for family in families}

    def pack(self, *, title: str, description: str, folder: str) -> Pack:
        return Pack(
            name=self.name,
            title=title,
            families=tuple(family.entry for family in self.families.values()),
            generate=self.generate,
            gold_answer=self.gold_answer,
            bad_answers=self.bad_answers,
            description=description,
            folder=folder,
        )

    def generate(self, family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
        """``count`` tasks with distinct prompts; one task in eight, by the hash of its prompt, is
        reserved. Raises KeyError for an unknown family and ValueError when it runs out of prompts."""
        wanted = self.families[family]
        tasks: list[TaskSpec] = []
        seen: set[str] = set()
        for index in range(40 * count + 400):
            if len(tasks) == count:
                return tasks
            draft = wanted.draw(self._rng(family, seed, index))
            key = _key(draft)
            if key in seen or (reserved is not None and _is_reserved(key) != reserved):
                continue
            seen.add(key)
            tasks.append(self._task(wanted, seed, index, draft))
        if len(tasks) == count:
            return tasks
        raise ValueError(f"{family} has fewer than {count} distinct prompts at seed {seed}")

    def gold_answer(self, task: TaskSpec) -> Solution:
        """A solution that passes. Raises ValueError for a task that this pack did not make."""
        return self.draft_of(task).gold

    def bad_answers(self, task: TaskSpec) -> Mapping[str, Solution]:
        """Solutions that must fail, by the name of the mistake. Raises as ``gold_answer``."""
        return self.draft_of(task).bad

    def draft_of(self, task: TaskSpec) -> Draft:
        parts = task.id.split(".")
        if len(parts) != 4 or parts[0] != self.name or parts[1] not in self.families:
            raise ValueError(f"task {task.id!r} is not from the {self.name} pack")
        if not (parts[2].isdecimal() and parts[3].isdecimal()):
            raise ValueError(f"task {task.id!r} is not from the {self.name} pack")
        return self.families[parts[1]].draw(self._rng(parts[1], int(parts[2]), int(parts[3])))

    def _rng(self, family: str, seed: int, index: int) -> random.Random:
        return random.Random(f"{self.name}:{family}:{seed}:{index}")

    def _task(self, family: SeededFamily, seed: int, index: int, draft: Draft) -> TaskSpec:
        system = (ChatMessage(role="system", content=draft.system),) if draft.system else ()
        return TaskSpec(
            id=f"{self.name}.{family.entry.name}.{seed}.{index}",
            family=family.entry.name,
            messages=(*system, ChatMessage(role="user", content=_content(draft))),
            verifier=VerifierSpec(kind=draft.verifier, params=draft.params),
            reference=draft.reference,
            environment=family.entry.environment,
            environment_params=draft.environment_params,
            hidden=draft.hidden,
            tools=draft.tools,
            source=f"{draft.layout}/{draft.origin}",
            max_tokens=family.max_tokens,
            tags=draft.tags,
        )


def _content(draft: Draft) -> str | list[dict[str, Any]]:
    if draft.image is None:
        return draft.prompt
    url = "data:image/png;base64," + base64.b64encode(draft.image()).decode()
    return [{"type": "text", "text": draft.prompt}, {"type": "image_url", "image_url": {"url": url}}]


def _key(draft: Draft) -> str:
    return f"{draft.system}\n{draft.prompt}{draft.image_key and chr(10) + draft.image_key}"


def _is_reserved(key: str) -> bool:
    return hashlib.sha256(key.encode()).digest()[0] % 8 == 0
