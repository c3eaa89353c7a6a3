"""Kinds of failure that a new project starts with. A project edits its own copy."""

from typing import NamedTuple


class FailureKind(NamedTuple):
    """``key`` is the digit that chooses it on the labelling screen; ``slug`` never changes."""

    key: str
    slug: str
    name: str
    description: str


class Severity(NamedTuple):
    """``rank`` orders severities; higher is worse."""

    rank: int
    slug: str
    name: str
    description: str


FAILURE_KINDS: tuple[FailureKind, ...] = (
    FailureKind("1", "wrong_value", "Wrong value", "A number, date, name or other fact is wrong."),
    FailureKind("2", "missing_content", "Missing content", "Something that was asked for is not there."),
    FailureKind("3", "invented_content", "Invented content", "The answer states what no source supports."),
    FailureKind("4", "wrong_format", "Wrong format", "The content may be right, but not in the asked form."),
    FailureKind("5", "instruction_ignored", "Instruction ignored", "A constraint of the request was broken."),
    FailureKind("6", "wrong_tool_call", "Wrong tool call", "The wrong tool, wrong arguments, or no call."),
    FailureKind("7", "faulty_reasoning", "Faulty reasoning", "The steps do not lead to the conclusion."),
    FailureKind("8", "faulty_code", "Faulty code", "The program is wrong, incomplete or unsafe."),
    FailureKind("9", "needless_refusal", "Needless refusal", "A legitimate request was declined."),
)

SEVERITIES: tuple[Severity, ...] = (
    Severity(1, "minor", "Minor", "The user can work with the answer."),
    Severity(2, "major", "Major", "The user must redo the work."),
    Severity(3, "critical", "Critical", "The answer can do harm if nobody notices."),
)


def kind_by_key(key: str) -> FailureKind | None:
    """The default kind under a digit, or None."""
    return next((kind for kind in FAILURE_KINDS if kind.key == key), None)
