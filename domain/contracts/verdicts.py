"""What a verifier says. "Could not decide" is a state of its own: never 0, never a pass."""

from typing import Literal, Self

from pydantic import Field, model_validator

from domain.contracts.base import Contract

Role = Literal["terminal", "process", "format", "guard"]


class Check(Contract):
    """One named observation inside a verdict. ``score`` in [0, 1], or None when undecided."""

    name: str
    role: Role = "terminal"
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    reason: str = ""


class Verdict(Contract):
    """The judgement of one answer.

    ``passed`` and ``failed`` carry a score in [0, 1]; ``unscored`` carries none.
    """

    state: Literal["passed", "failed", "unscored"]
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    checks: tuple[Check, ...] = ()
    reasons: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _score_matches_state(self) -> Self:
        if (self.score is None) != (self.state == "unscored"):
            raise ValueError("a verdict has a score exactly when it is not unscored")
        if self.state == "passed" and self.score == 0.0:
            raise ValueError("a passed verdict with score 0 is a contradiction")
        return self
