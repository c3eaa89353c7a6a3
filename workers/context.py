"""What a unit's function gets from the worker that runs it, and where it may keep files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from artifacts import ArtifactStore


class UnitRefused(ValueError):
    """No new attempt can mend this. The text goes to people: ids and numbers, no one's content."""


class Context(Protocol):
    """The worker's side of a unit. ``progress`` may be called often and must be cheap; an action given
    to ``when_reported`` runs once the unit's result is on its way, and not at all if it never is."""

    @property
    def store(self) -> ArtifactStore: ...

    def progress(self, values: dict[str, Any]) -> None: ...

    def when_reported(self, action: Callable[[], object]) -> None: ...


def adapters_root() -> Path:
    """Where adapters lie for engines to load: ``FLYWHEEL_ADAPTERS``, default ``var/adapters``."""
    return Path(os.environ.get("FLYWHEEL_ADAPTERS") or "var/adapters")
