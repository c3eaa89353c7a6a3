"""What an agent did, turn by turn, as the page of a result and the API show it."""

from typing import Any, NamedTuple

from apps.evals.models import Result
from artifacts import ArtifactMissing, get_store
from domain.contracts import FileChange, SandboxStep, Step
from domain.storable import storable


class Turn(NamedTuple):
    """``seen`` is what came back from the turn before; it is the task itself in the first and left out."""

    number: int
    seen: str
    said: str
    did: SandboxStep | None
    changes: tuple[FileChange, ...]


def turns_of(result: Result) -> list[Turn]:
    """The turns; none for an answer of one turn, or where retention has removed them."""
    steps = [Step.model_validate(row) for row in _stored(result)]
    return [
        Turn(
            number=at,
            seen=step.observation if at > 1 else "",
            said=step.action,
            did=step.sandbox,
            changes=step.sandbox.changes if step.sandbox else (),
        )
        for at, step in enumerate(steps, start=1)
    ]


def _stored(result: Result) -> Any:
    if not result.turns_digest:
        return []
    try:
        rows = get_store().iter_jsonl(result.turns_digest)
        return storable(next((row for at, row in enumerate(rows) if at == result.turns_line), []))
    except ArtifactMissing:
        return []
