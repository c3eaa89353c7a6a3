"""How an endpoint wants to be asked: which fields it takes, and whether it shows log-probabilities.

OpenAI-compatible endpoints differ in the name of the token limit, and some refuse a temperature, a seed
or log-probabilities. What one takes is learned once, when a reference is taken, and kept in it.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

REFUSALS = (400, 404, 405, 415, 422)  # statuses that mean "not so", as against "not now"
TOP_CHOICES = (20, 10, 5, 2)


@dataclass(frozen=True)
class Dialect:
    """``top`` alternatives with log-probabilities are told; 0 where none are."""

    limit: str = "max_tokens"
    temperature: bool = True
    seed: bool = True
    top: int = 0

    def body(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int | None = None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            self.limit: max_tokens,
        }
        if self.temperature:
            body["temperature"] = temperature
        if self.seed and seed is not None:
            body["seed"] = seed
        return body

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**{name: value[name] for name in cls.__dataclass_fields__ if name in value})


DEFAULT = Dialect()


def variants() -> list[Dialect]:
    """Ways to ask, the usual one first, then with fewer wishes."""
    bases = [DEFAULT, replace(DEFAULT, limit="max_completion_tokens")]
    fewer = [{}, {"seed": False}, {"temperature": False}, {"seed": False, "temperature": False}]
    return [replace(base, **changes) for changes in fewer for base in bases]  # type: ignore[arg-type]
