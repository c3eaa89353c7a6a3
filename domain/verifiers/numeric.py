"""The answer states exactly one number, and it is the right one.

A number that the sentence denies, doubts or only bounds ("not 42", "maybe 42", "more than 42") is
not stated, and neither is one beside other digits that cannot be read as a number of ours.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed
from domain.verifiers.numbers import close, find_numbers, parse_number
from domain.verifiers.polarity import denied, doubted, retracted

_COMMAND = re.compile(r"\\[A-Za-z]+$")


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    expected = parse_number(task.reference, params.get("decimal", "auto"))
    assert expected is not None  # checked with the specification

    found = find_numbers(answer, params.get("decimal", "auto"))
    if len(found) != 1:
        count = f"{len(found)} numbers" if found else "no number"
        return _failed("one_number", f"The answer must hold exactly one number; it holds {count}.")
    value = found[0].value
    if value is None:
        return _failed("one_number", "The number in the answer cannot be read: its separators make no sense.")
    if why := _unstated(unicodedata.normalize("NFKC", answer), found[0].start, found[0].end):
        return _failed("one_number", why)
    if not close(value, expected, params.get("tolerance", 0.005), params.get("relative", 0.0)):
        return _failed("value", f"The answer says {value:f}; that is not the expected number.")
    return passed([Check(name="one_number", role="format", score=1.0), Check(name="value", score=1.0)])


def _unstated(text: str, start: int, end: int) -> str:
    """Why ``text`` does not state the number at ``start:end`` of it, or an empty text."""
    if any(character.isdecimal() and not character.isascii() for character in text):
        return "The answer must hold exactly one number; it also holds digits of another script."
    if _in_braces(text[:start]):
        return "The number stands inside braces: it is part of code or data, not the answer."
    if denied(text, start, end) or retracted(text):
        return "The answer denies its number or takes it back."
    if doubted(text, start, end):
        return "The answer does not commit itself to its number: it doubts, bounds or asks for it."
    return ""


def _in_braces(before: str) -> bool:
    """Whether a brace is still open at the end of ``before``; those of LaTeX (``\\boxed{``) do not count."""
    opened: list[bool] = []
    for place, sign in enumerate(before):
        if sign == "{":
            opened.append(_COMMAND.search(before[max(0, place - 20) : place]) is None)
        elif sign == "}" and opened:
            opened.pop()
    return any(opened)


def _failed(check: str, reason: str) -> Verdict:
    if check == "one_number":
        return failed(reason, checks=[Check(name=check, role="format", score=0.0, reason=reason)])
    fine = Check(name="one_number", role="format", score=1.0)
    return failed(reason, checks=[fine, Check(name=check, score=0.0, reason=reason)])


def _check(params: Mapping[str, Any], reference: Any) -> None:
    if parse_number(reference, params.get("decimal", "auto")) is None:
        raise InvalidVerifier(f"Verifier 'numeric', reference: {reference!r} is not one finite number.")


KIND = VerifierKind(
    name="numeric",
    title="Number",
    description=(
        "The answer states exactly one number, equal to the reference within the tolerance. Currency, "
        "separators, parentheses for negatives and percent are understood; 12 % is 0.12. A number that is "
        "denied, doubted or only bounded is not stated."
    ),
    verify=_verify,
    params_schema={
        "type": "object",
        "properties": {
            "tolerance": {"type": "number", "minimum": 0},
            "relative": {"type": "number", "minimum": 0, "maximum": 1},
            "decimal": {"enum": ["auto", ".", ","]},
        },
        "additionalProperties": False,
    },
    reference_schema={"type": ["number", "string"]},
    check=_check,
)
