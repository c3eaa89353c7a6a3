"""The users of the demo: they ask through the gateway, and those who got a wrong answer say so.

A user knows the right answer to their own question, as users who correct a model do. Only wrong
answers are reported, because nobody praises an invoice field.
"""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import NamedTuple

from apps.loop.turn.context import Turn, TurnFailed
from apps.loop.turn.plan import FAMILY, PACK
from clients.flywheel import ApiError
from domain.contracts import TaskSpec
from domain.verifiers import verify
from packs.registry import pack_named

CONCURRENCY = 16
CHUNK = 64
_HOLD_EVERY_S = 5.0


class Exchange(NamedTuple):
    """One user's request. ``passed`` is None when no answer came."""

    passed: bool | None


def session(turn: Turn, stage: str) -> str:
    """What the names of a stage's users begin with."""
    return f"turn{turn.row.pk}-{stage}"


def send(turn: Turn, stage: str, tasks: Sequence[TaskSpec], start: int) -> list[Exchange]:
    """Send ``tasks`` as users ``start``, ``start`` + 1, …; sending one again is counted once.

    The first error that concerns the whole server stops the rest and is raised.
    """
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        futures = [
            pool.submit(_ask, turn, f"{session(turn, stage)}-{number}", task, interactive=bool(number % 2))
            for number, task in enumerate(tasks, start=start)
        ]
        try:
            while True:
                ended = wait(futures, timeout=_HOLD_EVERY_S, return_when=FIRST_EXCEPTION)
                if not ended.not_done or any(future.exception() for future in ended.done):
                    return [future.result() for future in futures if future in ended.done]
                turn.hold()
        finally:
            for future in futures:
                future.cancel()


def _ask(turn: Turn, name: str, task: TaskSpec, *, interactive: bool) -> Exchange:
    headers = {
        "x-flywheel-session": name,
        "x-flywheel-external-id": name,
        "x-flywheel-family": FAMILY,
        "x-flywheel-source": task.source,
        "x-flywheel-task-type": "interactive" if interactive else "quality",
    }
    messages = [message.model_dump(exclude_none=True) for message in task.messages]
    try:
        answer = turn.api.chat(messages, headers=headers, max_tokens=task.max_tokens, temperature=0.0)
    except ApiError as error:
        if _is_everyones(error):
            raise
        return Exchange(None)
    text = answer.json()["choices"][0]["message"]["content"] or ""
    passed = verify(task, text, {}).state == "passed"
    if not passed:
        _correct(turn, name, answer.headers["x-flywheel-operation"], task)
    return Exchange(passed)


def _is_everyones(error: ApiError) -> bool:
    """Nobody answers, or the request itself is refused; a busy or failing model is one user's bad luck."""
    return error.status < 500 and error.status != 429


def _correct(turn: Turn, name: str, operation: str, task: TaskSpec) -> None:
    item = {
        "external_id": name,
        "operation": operation,
        "metric": "correct",
        "value": False,
        "correction": pack_named(PACK).gold_answer(task),
    }
    taken = turn.api.post("/feedback", {"items": [item]})["results"][0]
    if taken["status"] == "invalid":
        raise TurnFailed(f"A user's correction was not taken: {taken['message']}")
