"""Which states things have, and which moves between them are legal. One table, one check."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

Moves = Mapping[str, frozenset[str]]


class Action(NamedTuple):
    """Something that is asked for by name: from which states, and where to."""

    sources: frozenset[str]
    target: str


class IllegalMove(ValueError):
    """The move is not in the table. The text is for users."""

    def __init__(self, message: str, *, kind: str, old: str, new: str) -> None:
        super().__init__(message)
        self.kind, self.old, self.new = kind, old, new


def _table(**moves: str) -> Moves:
    return MappingProxyType({old: frozenset(new.split()) for old, new in moves.items()})


# A unit goes back to pending when a reaper or a retryable failure grants a new attempt.
WORK_UNIT = _table(
    pending="sent cancelled failed",
    sent="running pending done failed cancelled",
    running="done failed cancelled pending",
    done="",
    failed="pending",
    cancelled="",
)
# Content is anonymized before anyone sees it; a dismissal can be undone from the label history.
CASE = _table(
    raw="anonymized dismissed",
    anonymized="labelled dismissed",
    labelled="anonymized asset dismissed",
    asset="",
    dismissed="anonymized",
)
# What still ran when a run was paused may be its last. A run that ended runs again to retry its errors.
RUN = _table(
    pending="running cancelled failed",
    running="paused done failed cancelled",
    paused="running done failed cancelled",
    done="running",
    failed="running",
    cancelled="",
)
TRAINING_RUN = _table(
    draft="running cancelled",
    running="paused done failed cancelled",
    paused="running failed cancelled",  # what still ran when it was paused may fail
    done="",
    failed="running cancelled",
    cancelled="",
)
# A candidate is in a release; a retired version may come back as the target of a roll-back.
VERSION = _table(
    registered="candidate in_service retired",
    candidate="registered in_service retired",
    in_service="retired",
    retired="candidate in_service",
)
RELEASE = _table(
    running="promoted rolled_back aborted",
    promoted="",
    rolled_back="",
    aborted="",
)

# What people ask for by name. Two of them lead to "running", from different states and with different
# work, so that the move alone does not say which is meant.
RUN_ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "pause": Action(frozenset({"running"}), "paused"),
        "resume": Action(frozenset({"paused"}), "running"),
        "cancel": Action(frozenset({"pending", "running", "paused"}), "cancelled"),
        "retry_errors": Action(frozenset({"done", "failed"}), "running"),
    }
)

KINDS: Mapping[str, Moves] = MappingProxyType(
    {
        "work_unit": WORK_UNIT,
        "case": CASE,
        "run": RUN,
        "training_run": TRAINING_RUN,
        "version": VERSION,
        "release": RELEASE,
    }
)


def check_move(kind: str, old: str, new: str) -> None:
    """Raise ``IllegalMove`` unless a ``kind`` may go from ``old`` to ``new``.

    Staying in a state is no move and is refused too: an idempotent caller asks ``may_move`` first.
    """
    if not may_move(kind, old, new):
        allowed = sorted(KINDS[kind].get(old, frozenset()))
        then = f"it can become {_listed(allowed)}" if allowed else "that is final"
        name = kind.replace("_", " ")
        message = f"This {name} is {_words(old)} and cannot become {_words(new)}; {then}."
        raise IllegalMove(message, kind=kind, old=old, new=new)


def next_state(kind: str, old: str, new: str) -> str:
    """``new``, once ``check_move`` has let it pass."""
    check_move(kind, old, new)
    return new


def may_act(action: str, state: str) -> bool:
    """Whether a run in ``state`` may be asked for ``action``. Raises ``KeyError`` for an unknown action."""
    return state in RUN_ACTIONS[action].sources


def state_after(action: str, state: str) -> str:
    """Where a run goes from ``state`` by ``action``; raises ``IllegalMove`` where it may not."""
    asked = RUN_ACTIONS[action]
    check_move("run", state, asked.target)
    if state not in asked.sources:
        sources = _listed(sorted(asked.sources))
        name = action.replace("_", " ")
        message = f"This run is {_words(state)}; only one that is {sources} can do this: {name}."
        raise IllegalMove(message, kind="run", old=state, new=asked.target)
    return asked.target


def may_move(kind: str, old: str, new: str) -> bool:
    """Whether the move is legal. Raises ``KeyError`` for an unknown kind."""
    return new in KINDS[kind].get(old, frozenset())


def is_final(kind: str, state: str) -> bool:
    """Whether nothing can follow ``state``. Raises ``KeyError`` for an unknown kind or state."""
    return not KINDS[kind][state]


def _words(state: str) -> str:
    return state.replace("_", " ")


def _listed(states: list[str]) -> str:
    words = [_words(state) for state in states]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
