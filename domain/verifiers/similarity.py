"""The answer is like the reference, by a metric of the field and a threshold.

Where the reference is a list, the text most like the answer counts. White space around both texts does
not. None of these metrics understands a text: a denial or another figure hardly lowers them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.text_metrics import METRICS
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed

MAX_TEXT = 20_000
_MOST_REFERENCES = 20
_MOST_TOGETHER = 100_000  # characters of all references: what one answer may cost
_NO_EMBEDDING = (
    "cosine compares embeddings of a model, and there is none here. cosine_tokens compares word counts; "
    "or choose another metric"
)


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params, text = task.verifier.params, answer.strip()
    metric, threshold = params["metric"], params["threshold"]
    if not text:
        return _failed(metric, 0.0, "The answer is empty.")
    if len(text) > MAX_TEXT:
        return _failed(
            metric, 0.0, f"The answer has {len(text)} characters; at most {MAX_TEXT} are compared."
        )
    references = _references(task.reference)
    score = max(METRICS[metric](text, reference.strip()) for reference in references)
    if score >= threshold - 1e-12:
        return Verdict(state="passed", score=score, checks=(Check(name=metric, score=score),))
    which = "the reference" if len(references) == 1 else f"the closest of {len(references)} references"
    return _failed(metric, score, f"{metric} with {which} is {score:.3f}, below {threshold:g}.")


def _failed(metric: str, score: float, reason: str) -> Verdict:
    return failed(reason, score=score, checks=[Check(name=metric, score=score, reason=reason)])


def _references(reference: str | list[str]) -> tuple[str, ...]:
    return (reference,) if isinstance(reference, str) else tuple(reference)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    _check_each(params["metric"], params["threshold"], _references(reference))


@lru_cache(maxsize=256)
def _check_each(metric: str, threshold: float, references: tuple[str, ...]) -> None:
    """The reference itself must pass: rouge_5 of four words is always 0, and METEOR of one word 0.5."""
    if sum(map(len, references)) > _MOST_TOGETHER:
        raise InvalidVerifier(
            f"Verifier 'similarity', reference: at most {_MOST_TOGETHER} characters together are compared."
        )
    for reference in references:
        text = reference.strip()
        if len(text) > MAX_TEXT:
            raise InvalidVerifier(
                f"Verifier 'similarity', reference: {len(text)} characters; at most {MAX_TEXT} are compared."
            )
        own = METRICS[metric](text, text)
        if own < threshold - 1e-12:
            raise InvalidVerifier(
                f"Verifier 'similarity': by {metric} the reference itself scores {own:.3f} and would not "
                f"reach {threshold:g}; it is too short for this metric."
            )


_TEXT = {"type": "string", "pattern": r"\S"}
KIND = VerifierKind(
    name="similarity",
    title="Text similarity",
    description=(
        "The answer is as like the reference, or the closest of several, as the threshold asks: by edits "
        "(levenshtein, fuzzy_match), shared n-grams (BLEU, GLEU, ROUGE, METEOR) or word counts "
        "(cosine_tokens). Meaning is not read: a denial hardly changes the score."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "metric": {
                "enum": list(METRICS),
                "x-refused": {"cosine": _NO_EMBEDDING},
                "description": "How alike two texts are, from 0 to 1.",
            },
            "threshold": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1,
                "description": "The answer passes from this score on.",
            },
        },
        "required": ["metric", "threshold"],
        "additionalProperties": False,
    },
    reference_schema={
        "anyOf": [_TEXT, {"type": "array", "minItems": 1, "maxItems": _MOST_REFERENCES, "items": _TEXT}]
    },
    check=_check,
)
