"""Drafting: guess that what follows now is what followed before.

The ending of a request's text is looked up in the text itself (Saxena 2023, "Prompt Lookup
Decoding") and in answers that were finished lately, longer endings first, and what came after
them is proposed. The model checks all proposals in one pass and only tokens that it would have
chosen anyway are kept: at temperature 0 a draft changes the speed and not the answer, and
nothing of another answer can show that the model did not say itself.
"""

from collections.abc import Sequence

DRAFT = 5  # proposed tokens at most; more cost a small model more than they bring
_KEPT = 20_000  # endings remembered from finished answers, about 3 MB
_OWN, _PAST = "own", "past"
# Where to look and how long an ending must agree, best first; by simulation on the starter families.
_ORDER = ((_OWN, 3), (_OWN, 2), (_PAST, 4), (_PAST, 3), (_OWN, 1), (_PAST, 2))


class Drafter:
    """Remembers finished answers; one for all requests of a server."""

    def __init__(self) -> None:
        self._past: dict[tuple[int, ...], tuple[int, ...]] = {}

    def propose(self, text: Sequence[int]) -> list[int]:
        """At most ``DRAFT`` tokens that may follow ``text``; empty when nothing like it was seen."""
        for place, length in _ORDER:
            if len(text) <= length:
                continue
            if place == _OWN:
                draft = own_continuation(text, length)
            else:
                draft = list(self._past.get(tuple(text[-length:]), ()))
            if draft:
                return draft
        return []

    def learn(self, text: Sequence[int], start: int) -> None:
        """Remember what followed each ending inside the answer, which begins at ``start``."""
        for end in range(max(start, 4), len(text)):
            for place, length in _ORDER:
                if place == _PAST:
                    key = tuple(text[end - length : end])
                    self._past.pop(key, None)  # so that the order of the dict is that of last use
                    self._past[key] = tuple(text[end : end + DRAFT])
        for key in list(self._past)[: max(len(self._past) - _KEPT, 0)]:
            del self._past[key]


def own_continuation(text: Sequence[int], length: int) -> list[int]:
    """What followed the latest earlier occurrence of the last ``length`` tokens."""
    size, ending = len(text), list(text[-length:])
    for start in range(size - length - 1, -1, -1):
        if text[start + length - 1] == ending[-1] and list(text[start : start + length]) == ending:
            return list(text[start + length : start + length + DRAFT])
    return []


def accepted(draft: Sequence[int], chosen: Sequence[int]) -> int:
    """How many drafted tokens the model chose itself. ``chosen`` has one token more than
    ``draft``: the model's choice after each prefix."""
    for index, token in enumerate(draft):
        if chosen[index] != token:
            return index
    return len(draft)
