"""Which tasks to practise next: those that succeed sometimes.

State is plain data and part of a training checkpoint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

LOW, HIGH = 0.1, 0.9


class TaskProgress(NamedTuple):
    """``rate`` is the moving average of the pass rate, ``seen`` the number of groups behind it."""

    rate: float
    seen: int


@dataclass(frozen=True)
class Curriculum:
    """``decay`` is the weight of the past; ``epsilon`` is added to p(1−p) inside [0.1, 0.9];
    ``floor`` is the weight of set-aside tasks outside, so that they are revisited."""

    decay: float = 0.7
    epsilon: float = 0.05
    floor: float = 0.02
    tasks: Mapping[str, TaskProgress] = field(default_factory=dict)

    def updated(self, task_id: str, pass_rate: float | None) -> "Curriculum":
        """After one more group of ``task_id``; an unknown pass rate (None) changes nothing."""
        if pass_rate is None:
            return self
        if not 0.0 <= pass_rate <= 1.0:
            raise ValueError("a pass rate lies in [0, 1]")
        old = self.tasks.get(task_id)
        rate = pass_rate if old is None else self.decay * old.rate + (1 - self.decay) * pass_rate
        new = TaskProgress(rate, 1 if old is None else old.seen + 1)
        return Curriculum(self.decay, self.epsilon, self.floor, {**self.tasks, task_id: new})

    def weight(self, task_id: str) -> float:
        """p(1−p) + ε inside [0.1, 0.9], the floor outside; unseen tasks count as p = ½."""
        progress = self.tasks.get(task_id)
        rate = 0.5 if progress is None else progress.rate
        return rate * (1 - rate) + self.epsilon if LOW <= rate <= HIGH else self.floor

    def draw(self, task_ids: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
        """``count`` tasks by weight without repetition; once all are used up, the round starts anew."""
        if not task_ids:
            raise ValueError("there is no task to draw from")
        weights = np.array([self.weight(task_id) for task_id in task_ids])
        drawn: list[str] = []
        while len(drawn) < count:
            size = min(count - len(drawn), len(task_ids))
            picks = rng.choice(len(task_ids), size=size, replace=False, p=weights / weights.sum())
            drawn += [task_ids[int(pick)] for pick in picks]
        return drawn

    def to_dict(self) -> dict[str, object]:
        return {
            "decay": self.decay,
            "epsilon": self.epsilon,
            "floor": self.floor,
            "tasks": {name: [task.rate, task.seen] for name, task in sorted(self.tasks.items())},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Curriculum":
        tasks = data["tasks"]
        if not isinstance(tasks, Mapping):
            raise TypeError("tasks must be a mapping")
        return cls(
            float(str(data["decay"])),
            float(str(data["epsilon"])),
            float(str(data["floor"])),
            {str(name): TaskProgress(float(row[0]), int(row[1])) for name, row in tasks.items()},
        )
