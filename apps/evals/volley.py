"""Many short questions at one target, a few at a time, that stop where it is dead or time is up."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from apps.evals.asking import CannotAsk
from apps.evals.dialect import REFUSALS

PARALLEL = 4
GIVE_UP_AFTER = 2  # questions in a row without an answer: a dead endpoint must not hold the worker
T = TypeVar("T")


class Volley:
    """``ask`` as often as there is something to ask. ``problem`` is the last failure, in words.

    At most ``bound_s`` seconds after it was made nothing more is asked. ``per_minute`` paces requests.
    ``parallel`` questions run at the same time.
    """

    def __init__(self, *, bound_s: float, parallel: int = PARALLEL, per_minute: int | None = None) -> None:
        self.problem, self.over = "", False
        self.refused = False  # the last failure was a refusal of the question, not of any
        self._start_s = time.monotonic()
        self._end_s = self._start_s + bound_s
        self._answered = 0
        self.per_minute, self.parallel = per_minute, max(1, min(parallel, PARALLEL))
        self._gap_s = 60.0 / per_minute if per_minute else 0.0
        self._next_s = 0.0
        self._silent = 0
        self._lock = threading.Lock()

    def ask(self, questions: Sequence[Callable[[], T]], *, one_by_one: bool = False) -> list[T | None]:
        """Answers in order; None where none came. The first questions are asked one by one until one is
        answered, so that a dead target costs ``GIVE_UP_AFTER`` of them and no more."""
        answers: list[T | None] = []
        for question in questions[:GIVE_UP_AFTER]:
            answers.append(self._one(question))
            if answers[-1] is not None:
                break
        else:
            self.over = self.over or bool(questions)
        rest = questions[len(answers) :]
        if one_by_one or self.parallel == 1 or self.over or not rest:
            return [*answers, *(self._one(question) for question in rest)]
        with ThreadPoolExecutor(self.parallel, thread_name_prefix="probe") as pool:
            return [*answers, *pool.map(self._one, rest)]

    def room(self) -> int:
        """How many more answers would come in time, at the rate of those so far."""
        now = time.monotonic()
        left_s = max(0.0, self._end_s - now)
        found = left_s * self._answered / max(1e-3, now - self._start_s)
        return int(found if self.per_minute is None else min(found, left_s * self.per_minute / 60))

    def _one(self, question: Callable[[], T]) -> T | None:
        if not self._may_ask():
            return None
        try:
            answer = question()
        except CannotAsk as error:
            with self._lock:
                self.problem, self.refused = str(error), error.status in REFUSALS
                self._silent += 1
                self.over = self.over or self._silent >= GIVE_UP_AFTER * self.parallel
            return None
        with self._lock:
            self._silent = 0
            self._answered += 1
        return answer

    def _may_ask(self) -> bool:
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._next_s)
            if not self.over and begin >= self._end_s:
                self.over, self.problem = True, "A round's time was up before everything was asked."
            if self.over:
                return False
            self._next_s = begin + self._gap_s
        if begin > now:
            time.sleep(begin - now)
        return True
