"""What a family's module makes before it becomes a ``TaskSpec``, and how tasks are numbered.

A task is a pure function of family, seed and index, and its id carries all three: the same id is the
same task everywhere, and its answers can be made again from the id alone.
"""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.contracts.tasks import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from packs.registry import Solution

_TRIES = 60
_ATTEMPTS = 20


class NoTask(Exception):
    """What was drawn makes no sound task, such as a rule that is always 0; another draw may."""


@dataclass(frozen=True)
class Draft:
    """One task in the making. ``gold`` passes the verifier; every answer in ``bad`` fails. ``origin`` is
    the cluster: tasks of one shape share it."""

    prompt: str
    verifier: VerifierSpec
    reference: Any
    gold: Solution
    bad: Mapping[str, Solution]
    origin: str
    environment: str = "single_turn"
    environment_params: Mapping[str, Any] = field(default_factory=dict)
    hidden: HiddenCheck | None = None
    max_tokens: int = 256


Make = Callable[[random.Random], Draft]


@dataclass(frozen=True)
class Tasks:
    """The tasks and answers of one pack, from the modules of its families."""

    pack: str
    makers: Mapping[str, Make]

    def generate(self, family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
        """``count`` tasks with distinct prompts, the same for the same arguments; a longer list begins
        with a shorter one. One prompt in eight, by its hash, is ``reserved``: True asks for those,
        False for the others. Raises KeyError for an unknown family, ValueError when it runs dry."""
        tasks: list[TaskSpec] = []
        seen: set[bytes] = set()
        for index in range(_TRIES * count + 400):
            if len(tasks) == count:
                break
            made = self._draft(family, seed, index)
            key = _key(made)
            if key in seen or (reserved is not None and (key[0] % 8 == 0) != reserved):
                continue
            seen.add(key)
            tasks.append(self._task(family, seed, index, made))
        if len(tasks) < count:
            raise ValueError(f"{family} has fewer than {count} distinct prompts at seed {seed}")
        return tasks

    def gold_answer(self, task: TaskSpec) -> Solution:
        """A solution that passes. Raises ValueError for a task that this pack did not make."""
        return self.draft_of(task).gold

    def bad_answers(self, task: TaskSpec) -> Mapping[str, Solution]:
        """Solutions that must fail, by the name of the mistake. Raises as ``gold_answer``."""
        return self.draft_of(task).bad

    def draft_of(self, task: TaskSpec) -> Draft:
        parts = task.id.split(".")
        if len(parts) != 4 or parts[0] != self.pack or parts[1] not in self.makers:
            raise ValueError(f"task {task.id!r} is not from the pack {self.pack!r}")
        if not (parts[2].isdecimal() and parts[3].isdecimal()):
            raise ValueError(f"task {task.id!r} is not from the pack {self.pack!r}")
        return self._draft(parts[1], int(parts[2]), int(parts[3]))

    def _draft(self, family: str, seed: int, index: int) -> Draft:
        make, place = self.makers[family], f"{self.pack}:{family}:{seed}:{index}"
        for attempt in range(_ATTEMPTS):
            try:
                return make(random.Random(f"{place}:{attempt}" if attempt else place))
            except NoTask as found:
                reason = found
        raise reason

    def _task(self, family: str, seed: int, index: int, made: Draft) -> TaskSpec:
        return TaskSpec(
            id=f"{self.pack}.{family}.{seed}.{index}",
            family=family,
            messages=(ChatMessage(role="user", content=made.prompt),),
            verifier=made.verifier,
            reference=made.reference,
            environment=made.environment,
            environment_params=dict(made.environment_params),
            hidden=made.hidden,
            source=f"{family}/{made.origin}",
            max_tokens=made.max_tokens,
        )


def _key(made: Draft) -> bytes:
    """Two tasks are one when the solver sees the same."""
    shown = [made.prompt, *map(str, sorted(made.environment_params.get("files", {}).items()))]
    return hashlib.sha256("\n".join(shown).encode()).digest()
