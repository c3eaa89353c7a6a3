"""What an endpoint says of itself: model name, system fingerprint, tokens of fixed prompts.

These need no statistics: one difference flags. A name or fingerprint that the reference saw only once
says that there are more of them (Good–Turing: the chance of an unseen one is about the share of those
seen once), so such a field is not judged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from domain.drift.answers import Answer
from domain.drift.signal import Signal, unmeasured

NAME = "identity"


def identity_reference(passes: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """From complete passes over the same prompts. A token count that varied is None: it is not judged."""
    everything = [answer for answers in passes for answer in answers]
    counts: list[int | None] = []
    for answers in zip(*passes, strict=True):
        told = {answer.prompt_tokens for answer in answers}
        counts.append(told.pop() if len(told) == 1 else None)
    return {
        "models": dict(sorted(Counter(answer.model for answer in everything).items())),
        "fingerprints": dict(sorted(Counter(answer.fingerprint for answer in everything).items())),
        "prompt_tokens": counts,
    }


def identity_signal(reference: Mapping[str, Any], answers: Sequence[Answer | None]) -> Signal:
    """Compare one pass with ``reference``; None stands for a prompt that was not answered."""
    given = [(index, answer) for index, answer in enumerate(answers) if answer is not None]
    if not given:
        return unmeasured(NAME, "No prompt was answered.")
    reasons = []
    models = _unseen(reference["models"], [answer.model for _, answer in given])
    if models:
        reasons.append(f"It calls itself “{models[0]}”, before “{', '.join(reference['models'])}”.")
    if _unseen(reference["fingerprints"], [answer.fingerprint for _, answer in given]):
        reasons.append("Its system fingerprint is new.")
    told = reference["prompt_tokens"]
    counted = [
        (told[index], answer.prompt_tokens)
        for index, answer in given
        if told[index] is not None and answer.prompt_tokens is not None
    ]
    differing = sum(before != now for before, now in counted)
    if differing:
        reasons.append(f"{differing} of {len(counted)} prompts now count another number of tokens.")
    return Signal(
        NAME,
        "flagged" if reasons else "unchanged",
        float(len(reasons)),
        0.0,
        len(given),
        reasons,
        {
            "models": sorted({answer.model for _, answer in given}),
            "fingerprints": sorted({answer.fingerprint for _, answer in given}),
            "counts_differ": differing,
            "counts_compared": len(counted),
        },
    )


def _unseen(seen: Mapping[str, int], now: Sequence[str]) -> list[str]:
    """Values that the reference never saw; none where the reference saw one of its own only once."""
    if min(seen.values()) < 2:
        return []
    return sorted(set(now) - set(seen))
