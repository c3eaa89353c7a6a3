"""The answer holds given texts: all of them, any of them, or none, anywhere or at one end."""

from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    mode, where = params.get("mode", "all"), params.get("where", "anywhere")
    fold = params.get("ignore_case", False)
    text = answer.casefold() if fold else answer
    found = [_holds(text, wanted.casefold() if fold else wanted, where) for wanted in params["texts"]]
    if mode == "any":
        return _any(params["texts"], found, where)
    checks = [
        _check_of(wanted, there is (mode == "all"), there, where)
        for wanted, there in zip(params["texts"], found, strict=True)
    ]
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    score = 0.0 if mode == "none" else (len(checks) - len(reasons)) / len(checks)
    return failed(*reasons, score=score, checks=checks)


def _any(texts: list[str], found: list[bool], where: str) -> Verdict:
    if True in found:
        return passed([Check(name=_named(texts[found.index(True)]), score=1.0)])
    reason = f"None of the {len(texts)} texts stands {_PLACES[where]}."
    return failed(reason, checks=[Check(name="texts", score=0.0, reason=reason)])


def _check_of(wanted: str, right: bool, there: bool, where: str) -> Check:
    word = "stands" if there else "does not stand"
    reason = "" if right else f"{shown(wanted, 60)} {word} {_PLACES[where]}."
    return Check(
        name=_named(wanted),
        role="guard" if there and not right else "terminal",
        score=1.0 if right else 0.0,
        reason=reason,
    )


def _holds(text: str, wanted: str, where: str) -> bool:
    """White space around the answer does not count at its ends, unless the text asks for some."""
    if where == "start":
        return text.startswith(wanted) or text.lstrip().startswith(wanted)
    if where == "end":
        return text.endswith(wanted) or text.rstrip().endswith(wanted)
    return wanted in text


def _named(wanted: str) -> str:
    return shown(wanted, 40)


def check_params(params: Mapping[str, Any]) -> None:
    texts = [text.casefold() if params.get("ignore_case") else text for text in params.get("texts", [])]
    if len(set(texts)) != len(texts):
        raise InvalidVerifier(
            "Verifier 'contains', parameters at texts: a text is written twice.", place="texts"
        )


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_params(params)


_PLACES = {"anywhere": "in the answer", "start": "at the start of the answer", "end": "at its end"}

KIND = VerifierKind(
    name="contains",
    title="Contains",
    description=(
        "The answer holds all of the texts, any of them, or none, anywhere or at its start or end. Nothing "
        "else of the answer is read: use rules for facts that may be denied, and join none with a verifier "
        "that asks for something, or an empty answer passes."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "texts": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {"type": "string", "pattern": r"\S", "maxLength": 2000},
                "description": "Texts to look for, as they are written.",
            },
            "mode": {
                "enum": ["all", "any", "none"],
                "description": "How many of them the answer must hold: all by default.",
            },
            "ignore_case": {"type": "boolean", "description": "Whether INVOICE counts as invoice."},
            "where": {
                "enum": ["anywhere", "start", "end"],
                "description": "White space around the answer does not count.",
            },
        },
        "required": ["texts"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_check,
    check_params=check_params,
)
