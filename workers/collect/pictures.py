"""Pictures of what was made, from the evidence into the steps that people look at."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import SandboxStep, Step

PREFIX = "data:image/png;base64,"
LARGEST = 30_000  # characters
_PICTURED = ("geometry", "scene")


def with_picture(steps: Sequence[Step], evidence: Mapping[str, Mapping[str, Any]]) -> tuple[Step, ...]:
    """``steps``, the last one with the picture that the evidence holds of its part or scene."""
    picture = next((found for name in _PICTURED if (found := picture_of(evidence.get(name, {})))), "")
    if not picture or not steps:
        return tuple(steps)
    *before, last = steps
    sandbox = last.sandbox or SandboxStep(command="script")
    shown = sandbox.model_copy(update={"picture": picture})
    return (*before, last.model_copy(update={"sandbox": shown}))


def picture_of(report: Mapping[str, Any]) -> str:
    """The picture in a report of ``geometry`` or ``scene``; "" where there is none to show."""
    found = report.get("picture")
    return found if isinstance(found, str) and found.startswith(PREFIX) and len(found) <= LARGEST else ""
