"""The answer is the reference, as text."""

import re
import unicodedata

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, shown

_SPACE = re.compile(r"\s+")


def normalized(text: str) -> str:
    """Compatible characters folded (NFKC), case folded, runs of white space made one space."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    same = (
        normalized(answer) == normalized(task.reference)
        if task.verifier.params.get("normalize", False)
        else answer.strip() == task.reference.strip()
    )
    if same:
        return passed([Check(name="text", score=1.0)])
    reason = f"The answer is not the expected text, but {shown(answer.strip())}."
    return failed(reason, checks=[Check(name="text", score=0.0, reason=reason)])


KIND = VerifierKind(
    name="exact",
    title="Exact text",
    description=(
        "The whole answer equals the reference; white space around it is ignored. "
        "With normalize, case, width and inner spacing are ignored too."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {"normalize": {"type": "boolean"}},
        "additionalProperties": False,
    },
    reference_schema={"type": "string", "pattern": r"\S"},
)
