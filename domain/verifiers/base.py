"""What a verifier kind is, what can be wrong with a specification, and how verdicts are built."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict

Evidence = Mapping[str, Any]
Verify = Callable[[TaskSpec, str, Evidence], Verdict]
JsonSchema = Mapping[str, Any]


class InvalidVerifier(ValueError):
    """The parameters or the reference do not fit the verifier. The text is for users; ``place`` is the
    parameter it speaks of, as in ``parts/0/params``, "" where it is about more than one."""

    def __init__(self, text: str, *, place: str = "") -> None:
        super().__init__(text)
        self.place = place


class UnknownVerifier(InvalidVerifier):
    """No verifier has this name. The text is for users."""


def _nothing_more(params: Mapping[str, Any], reference: Any) -> None:
    """Most kinds are fully described by their schemas."""


def _no_params(params: Mapping[str, Any]) -> None:
    """Most parameters are fully described by their schema."""


@dataclass(frozen=True)
class VerifierKind:
    """One way to judge an answer.

    ``verify`` is pure; it may assume that parameters and reference have been checked. ``needs``
    names the evidence that a sandbox must deliver first. ``check`` raises ``InvalidVerifier``
    for what the two JSON schemas cannot express; ``check_params`` does so for parameters that stand
    without a reference, and of which some may be left for each task to say.
    """

    name: str
    title: str
    description: str
    verify: Verify
    params_schema: JsonSchema
    reference_schema: JsonSchema
    needs: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, Any], Any], None] = field(default=_nothing_more)
    check_params: Callable[[Mapping[str, Any]], None] = field(default=_no_params)


def passed(checks: Iterable[Check] = ()) -> Verdict:
    return Verdict(state="passed", score=1.0, checks=tuple(checks))


def failed(*reasons: str, score: float = 0.0, checks: Iterable[Check] = ()) -> Verdict:
    return Verdict(state="failed", score=score, checks=tuple(checks), reasons=reasons)


def unscored(*reasons: str, checks: Iterable[Check] = ()) -> Verdict:
    return Verdict(state="unscored", score=None, checks=tuple(checks), reasons=reasons)


def shown(value: object, limit: int = 80) -> str:
    """``value`` quoted for a reason, cut to ``limit`` characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer with thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"
