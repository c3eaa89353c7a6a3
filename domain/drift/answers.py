"""Short answers at temperature 0: how many equal the reference's, against its own rate of matching itself.

Serving is not exactly deterministic, so an endpoint does not always match itself. The rate is measured
when the reference is taken, and how uncertain it is counts: with ``m`` of ``n`` repeats matching, the
matches of an unchanged round are beta-binomial with Beta(m + ½, n − m + ½) (Jeffreys).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from domain.distributions import beta_binomial_cdf
from domain.drift.signal import ALPHA, MIN_MEASURED, Signal, unmeasured

NAME = "answers"


class Answer(NamedTuple):
    """``fingerprint`` is empty and ``prompt_tokens`` None where the endpoint does not tell them."""

    text: str
    model: str
    fingerprint: str
    prompt_tokens: int | None


def answers_reference(passes: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """From at least two complete passes: the first's answers, and how many later ones equal them."""
    first = passes[0]
    repeats = [
        answer.text == origin.text
        for later in passes[1:]
        for answer, origin in zip(later, first, strict=True)
    ]
    return {
        "texts": [answer.text for answer in first],
        "matched": sum(repeats),
        "repeats": len(repeats),
    }


def answers_signal(reference: Mapping[str, Any], answers: Sequence[Answer | None]) -> Signal:
    """Flags where an unchanged endpoint would match so rarely in fewer than one of 1,000 rounds."""
    texts = reference["texts"]
    given = [(index, answer) for index, answer in enumerate(answers) if answer is not None]
    if not given or len(given) < MIN_MEASURED * len(texts):
        return unmeasured(NAME, f"Only {len(given)} of {len(texts)} answers came.", len(given))
    matched = sum(answer.text == texts[index] for index, answer in given)
    fewest = fewest_matches(reference["matched"], reference["repeats"], len(given))
    flagged = matched < fewest
    reasons = []
    if flagged:
        reasons.append(
            f"{matched} of {len(given)} answers equal the reference's; unchanged, it gives fewer than "
            f"{fewest} in less than 1 of {1 / ALPHA:,.0f} rounds."
        )
    return Signal(
        NAME,
        "flagged" if flagged else "unchanged",
        float(matched),
        float(fewest),
        len(given),
        reasons,
        {"p": chance_of_so_few(reference["matched"], reference["repeats"], len(given), matched)},
    )


def chance_of_so_few(matched: int, repeats: int, asked: int, seen: int) -> float:
    """P(at most ``seen`` of ``asked`` match) of an unchanged endpoint."""
    return beta_binomial_cdf(seen, asked, matched + 0.5, repeats - matched + 0.5)


@lru_cache(maxsize=1024)
def fewest_matches(matched: int, repeats: int, asked: int) -> int:
    """The smallest count that does not flag."""
    counts = range(asked + 1)
    return next(
        (count for count in counts if chance_of_so_few(matched, repeats, asked, count) >= ALPHA), asked
    )
