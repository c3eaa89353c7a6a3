"""The answer compared with the reference as OpenAI's string check grader does it: eq, ne, like, ilike.

Source: OpenAI API reference, graders, ``string_check``. Nothing is trimmed or normalised; ``exact`` is
the kind that does so. ``ilike`` folds case by Unicode's rules.
"""

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, shown


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    operation, reference = task.verifier.params["operation"], task.reference
    right, reason = {
        "eq": (answer == reference, "The answer is not the reference, but {}."),
        "ne": (answer != reference, "The answer is the reference, which it must not be."),
        "like": (reference in answer, "The answer does not contain the reference; it is {}."),
        "ilike": (
            reference.casefold() in answer.casefold(),
            "The answer does not contain the reference, whatever its case; it is {}.",
        ),
    }[operation]
    if right:
        return passed([Check(name=operation, score=1.0)])
    said = reason.format(shown(answer))
    return failed(said, checks=[Check(name=operation, score=0.0, reason=said)])


KIND = VerifierKind(
    name="string_check",
    title="String check",
    description=(
        "The answer equals the reference (eq), differs from it (ne), contains it (like), or contains it "
        "whatever its case (ilike), letter by letter. An empty answer passes ne: join it with another."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "operation": {
                "enum": ["eq", "ne", "like", "ilike"],
                "description": "eq: equal; ne: different; like: contains; ilike: contains, any case.",
            }
        },
        "required": ["operation"],
        "additionalProperties": False,
    },
    reference_schema={"type": "string", "minLength": 1},
)
