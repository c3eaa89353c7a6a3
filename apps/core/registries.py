"""Where a lower app lets a higher one speak, filled in ``AppConfig.ready()``.

The import graph is a chain; these lists are how the end of the chain reaches the start
without being imported by it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from apps.core.models import Project, WorkUnit
    from apps.core.permissions import Actor


@dataclass(frozen=True)
class UnitHandler:
    """What happens to a unit's owner. Called inside the transaction that closes the unit.

    ``finished(unit, result)`` stores the result (idempotent upsert); ``failed(unit, error)`` is
    called when no attempt is left or the failure is final. ``is_held(unit)`` says whether its owner is
    paused, so that a lost attempt waits for the resumption; it may lock the owner. ``renewed(unit)`` is
    the payload at the moment of sending, where what was planned may have aged, such as a token.
    """

    finished: Callable[["WorkUnit", dict[str, Any]], None]
    failed: Callable[["WorkUnit", str], None]
    is_held: Callable[["WorkUnit"], bool] | None = None
    renewed: Callable[["WorkUnit"], dict[str, Any]] | None = None


class Progress(Protocol):
    """Says how far a unit is. Raises where the unit was cancelled or another attempt took its place."""

    def __call__(self, **progress: Any) -> bool: ...


class UnitRunner(Protocol):
    """Does the work of a unit in the web side's worker and returns its result (JSON).

    It keeps its own writes idempotent and calls ``progress`` now and then. ``Refused`` is final; any other
    error is worth another attempt.
    """

    def __call__(self, unit: "WorkUnit", progress: Progress) -> dict[str, Any]: ...


@dataclass(frozen=True)
class PeriodicTask:
    """A Celery task name that beat sends every ``every_s`` seconds to ``queue``."""

    task: str
    every_s: float
    queue: str = "web"


@dataclass(frozen=True)
class Stage:
    """One stage of the Loop page, in order ``order``."""

    order: int
    name: str
    summary: Callable[["Project"], Mapping[str, Any]]  # {"value", "note", "url", "tone", "since"?}
    first_step: str = ""  # what fills the stage, in one sentence, for a project that is still empty


@dataclass(frozen=True)
class PersonalTask:
    """A row of "Needs a person": ``{"what", "why", "since", "url", "action"}``."""

    rows: Callable[["Project"], list[Mapping[str, Any]]]


@dataclass(frozen=True)
class ReleaseListener:
    """Hears ``promoted`` and ``rolled_back`` inside the transaction that decides it."""

    heard: Callable[[str, Any], None]


@dataclass(frozen=True)
class RequiredGate:
    """A gate that a version must have passed before it is released.

    Its answers are evidence of the kind "gate" from the source ``key``; one counts only while the
    ``stamp`` in its data is this one: the rules and cases in force.
    """

    key: str
    title: str
    url: str
    stamp: str


# Called inside the transaction that makes a project, with the project and who made it.
project_made: list[Callable[["Project", "Actor"], object]] = []
unit_handlers: dict[str, UnitHandler] = {}
# Kinds that need the database or its keys. All other kinds go to the heavy workers.
unit_runners: dict[str, UnitRunner] = {}
periodic_tasks: list[PeriodicTask] = []
nav_counts: dict[str, Callable[["Project"], str]] = {}
loop_stages: list[Stage] = []
personal_tasks: list[PersonalTask] = []
release_listeners: list[ReleaseListener] = []
# Each names the processes that do not serve the project's routing revision of that number yet.
routing_lags: list[Callable[["Project", int], list[str]]] = []
# Each names gates that releases of the project must have passed.
required_gates: list[Callable[["Project"], list[RequiredGate]]] = []
