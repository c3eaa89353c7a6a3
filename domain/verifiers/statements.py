"""What a text states: phrases that occur and are not denied, piece by piece, with the passages that each
piece cites."""

import re
from collections.abc import Sequence
from functools import lru_cache

from domain.verifiers.polarity import denied, disclaimed
from domain.verifiers.prose import find_phrase, folded, sentences, words

CITATION = re.compile(r"\[\s*([A-Za-z]{0,8}[0-9]{1,4}(?:\s*[,;]\s*[A-Za-z]{0,8}[0-9]{1,4})*)\s*\]")


def stated(answer: str, variants: Sequence[str], *, mention: bool = False, firm: bool = False) -> bool:
    """Whether ``answer`` states one of ``variants``: it occurs where it is not denied, or with
    ``mention`` anywhere. ``firm``: nor in a sentence that asks, doubts or disowns it."""
    text = folded(answer)
    return any(
        mention or not (_denied_before(text, start, end) or (firm and disclaimed(text, start, end)))
        for phrase in variants
        for start, end in find_phrase(answer, phrase)
    )


def _denied_before(text: str, start: int, end: int) -> bool:
    """Only a denial in the same clause, at most six words before the phrase, or right behind it."""
    clause = re.split(r"[,;:\n]|\b(?:but|and|which|because)\b", text[max(0, start - 200) : start])[-1]
    near = " ".join(clause.split()[-6:])
    padded = f"{near} {text[start:end]}"
    behind = re.match(r"\s+(?:is|was|are|were|will be)\s+(?:not|wrong|false|incorrect)\b", text[end:])
    return denied(padded, len(near) + 1, len(padded)) or behind is not None


@lru_cache(maxsize=256)
def pieces(answer: str) -> tuple[str, ...]:
    """Sentences; a citation that follows the full stop belongs to the sentence before it."""
    parts: list[str] = []
    for part in sentences(answer):
        rest = CITATION.sub(" ", part)
        lead = re.match(rf"(?:{CITATION.pattern}\s*)+", part)
        if parts and lead:
            parts[-1] = f"{parts[-1]} {lead.group()}"
            part = part[lead.end() :]
        if words(rest):
            parts.append(part)
    return tuple(parts)


def citations_in(text: str) -> set[str]:
    return {key.casefold() for match in CITATION.findall(text) for key in re.split(r"\s*[,;]\s*", match)}


def folded_ids(ids: Sequence[str]) -> set[str]:
    return {key.casefold() for key in ids}
